"""The table of mutations, by what is wrong then."""

from mutations.mutation import Mutation as Mutation
from mutations.results import RESULTS
from mutations.searches import SEARCHES
from mutations.testbeds import TESTBEDS

MUTATIONS = (*TESTBEDS, *SEARCHES, *RESULTS)
