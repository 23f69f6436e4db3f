/* SPDX-License-Identifier: Apache-2.0 */
/* Connections over which frames go in passes: in each pass one frame over each of them, all one way.

   The first pass opens them. The programs at both ends and those that send share what is known of each connection. */

enum { PASSES = 0xFF, STRANGE = 0x100, LATE = 0x200, TAGS_APART_BITS = 8, MOST_PASSES = 256, MOST_EARLIER = 64 };

/* A connection: the addresses and ports with which its first frame arrived, in the order of the network. The lower bits of
   its state are how many of its frames have arrived, all in their passes; others say that one came with other addresses,
   or late. */
struct connection {
    u32 source, destination;
    u32 ports, state;
};

struct exchange {
    /* The tag of the first pass, and of the one that is under way; those of two passes are so far apart. */
    u64 first, latest;
    /* Whether the Initiator sends it; and whether its frames are late from now on. */
    u64 is_forward, is_over;
    /* How many connections there are, and which may be the next to send. */
    u64 count, cursor;
    /* What the port of answers differs in from the one that a connection was opened to, in the order of the network. */
    u64 other_port;
    /* MAC addresses of answers: those of the first frame that arrived, in each other's place. */
    u64 macs, more_macs;
    /* Connections whose frames arrived in this pass; further copies; connections of which a frame came with other
       addresses, and none with its own. */
    u64 arrived, copies, strangers;
    /* Connections whose frame came late. Frames that belong to nobody, that reject connections, and that came from a
       gateway with another MAC address. */
    u64 late, foreign, rejections, other_macs;
    /* The first tags of earlier exchanges, how many passes these had, and their frames that came since. */
    u64 first_tags[MOST_EARLIER], passes[MOST_EARLIER], late_frames[MOST_EARLIER];
};

extern struct exchange exchange;
extern struct connection connections[];

/* For how many connections there is memory. */
CONSTANT u32 ROOM;

/* A connection by its number; 0: there is none. */
PART struct connection *connection_of(u64 number)
{
    if (number >= exchange.count || number >= ROOM)
        return 0;
    /* Only now, as the compiler would compute the address before the kernel sees that it is within bounds. */
    KEEP(number);
    return &connections[number];
}

/* Which pass the tag of this exchange belongs to, from 0 on; MOST_PASSES: it is of no such pass. */
PART u64 pass_of(u32 tag)
{
    u32 since = tag - (u32)exchange.first;
    if (since > (u32)exchange.latest - (u32)exchange.first || since & ((1 << TAGS_APART_BITS) - 1))
        return MOST_PASSES;
    return since >> TAGS_APART_BITS;
}
