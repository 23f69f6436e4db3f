/* SPDX-License-Identifier: Apache-2.0 */
/* The frames of a direction: how to write them, and how to compare them with what was sent.

   `lossratio.agent.xdp.constants` has the same constants. */

#include "program.h"

enum { MOST_WORDS = 20, MOST_FIELDS = 6, MOST_CHECKSUMS = 4, MOST_SIZED = 6, MOST_HEADERS = 2, HEADER_WORDS = 5 };
enum { LONGEST_FRAME = 4096, RING_BITS = 20, WRAP_BITS = 16, WRAPS = 4095, MOST_WAYS = 8 };

/* A field whose value changes from frame to frame. */
struct field {
    u64 first;
    u32 offset, width, count, is_shuffled, order, is_ignored, is_address, pad;
};

/* A checksum over such fields: `covered` has a bit for each of them, and `sum` is the sum of everything else. */
struct checksum {
    u32 offset, sum, covers_all, covered, is_udp, is_ignored;
};

struct sized {
    u32 offset, is_ignored;
};

/* Where a header starts whose checksum a device on the path may rewrite, and the sum of its options. */
struct header {
    u32 start, options;
};

struct frames {
    /* The beginning of every frame, in words of eight bytes; a mask of the bits that never change; a mask of
       addresses. */
    u64 words[MOST_WORDS], masks[MOST_WORDS], addresses[MOST_WORDS];
    /* The last eight bytes of the beginning, if its length is not a multiple of eight. */
    u64 tail, tail_mask, tail_addresses;
    struct field fields[MOST_FIELDS];
    struct checksum checksums[MOST_CHECKSUMS];
    struct sized sized[MOST_SIZED];
    struct header headers[MOST_HEADERS];
    /* How many of each there are; the length of the beginning (`direct`) and of the longest frame, in bytes. */
    u32 field_count, checksum_count, sized_count, header_count, direct, longest;
    u32 pad, words_count, tag_offset, is_numbered, compensation, behind_vlan;
    u32 flows, round, period;
    /* For frames of several sizes: the length of their pattern, where it is in `contents`, and the bytes of each
       entry. */
    u32 sizes, pattern, stride;
    /* Where the contents of the longest frame are, and, for each entry of the pattern, the sums of what follows the
       beginning. */
    u32 contents, sums;
};

/* Shared memory: patterns of sizes, orders of fields, and contents. */
extern u8 contents[];
/* Shared memory, a ring for each stream: when each of its latest frames was sent (upper 48 bits), and in which round of
   the ring, from 1 (lower 16 bits). */
extern u64 times[];

#define AT(type, place) (*(type *)(place))

/* Where a frame's time of sending is kept. It takes two steps, because the compiler turns a sum into an "or", and
   kernels before 6.10 then lose track of its bounds. */
PART u64 *entry_of(u64 ring, u32 number)
{
    u64 *entries = &times[ring << RING_BITS];
    KEEP(entries);
    return &entries[number & ((1 << RING_BITS) - 1)];
}

/* What is special to one frame: its size, its flow, and the values of its fields. */
struct values {
    u32 *entry;
    u64 place, flow;
    u64 fields[MOST_FIELDS];
    /* The sum of each field's words, and the sum of all of these. */
    u64 sums[MOST_FIELDS], sum;
};

/* The complement of a sum of at most 18 bits, after its carries have been added (RFC 1071). */
PART u16 complement(u64 sum)
{
    sum = (sum & 0xFFFF) + (sum >> 16);
    return ~(sum + (sum >> 16));
}

/* Adds the upper bits of a sum to its lower 16 bits: 32 bits become 17, and no result has more than 19 bits. */
PART u64 folded(u64 sum)
{
    return (sum & 0xFFFF) + (sum >> 16);
}

/* Does something with each word of eight bytes. A loop would also have to count. */
#define WORD(i, words, done, DO) \
    if (words <= i) \
        goto done; \
    DO(i)
#define ALL_WORDS(words, done, DO) WORD(0, words, done, DO) LATER_WORDS(words, done, DO)
#define LATER_WORDS(words, done, DO) \
    WORD(1, words, done, DO) WORD(2, words, done, DO) WORD(3, words, done, DO) WORD(4, words, done, DO) \
    WORD(5, words, done, DO) WORD(6, words, done, DO) WORD(7, words, done, DO) WORD(8, words, done, DO) \
    WORD(9, words, done, DO) WORD(10, words, done, DO) WORD(11, words, done, DO) WORD(12, words, done, DO) \
    WORD(13, words, done, DO) WORD(14, words, done, DO) WORD(15, words, done, DO) WORD(16, words, done, DO) \
    WORD(17, words, done, DO) WORD(18, words, done, DO) WORD(19, words, done, DO)

/* Finds a frame's entry in the pattern of sizes. */
PART int find_size(const struct frames *frames, u32 number, struct values *values)
{
    u64 place = number % frames->sizes;
    KEEP(place);
    if (place >= frames->sizes)
        return 0;
    values->place = place;
    values->entry = (u32 *)(contents + frames->pattern + place * frames->stride);
    return 1;
}

/* Computes a frame's flow and the values of its fields. */
PART int find_values(const struct frames *frames, u32 number, struct values *values)
{
    u32 flow = 0, flows = frames->flows;
    if (KNOWN(flows > 1)) {
        flow = number;
        if (KNOWN(frames->round < frames->period)) {
            flow %= frames->period;
            flow += flow / frames->round;
        }
        flow %= flows;
    }
    KEEP(flow);
    values->flow = flow;
    values->sum = 0;
    ROUNDS(i, 0, MOST_FIELDS, frames->field_count) {
        const struct field *field = &frames->fields[i];
        u64 step = flow;
        if (KNOWN(field->count < flows))
            step = flow % field->count;
        KEEP(step);
        if (KNOWN(field->is_shuffled)) {
            if (step >= field->count)
                return 0;
            step = *(u32 *)(contents + field->order + 4 * step);
        }
        u64 value = step + field->first;
        values->fields[i] = value;
        values->sums[i] = folded(value);
        if (KNOWN(field->width > 4))
            values->sums[i] = folded(folded((value >> 32) + (u32)value));
        values->sum += values->sums[i];
    }
    return 1;
}

/* A checksum, from the values of the fields, in network byte order. */
PART u16 compute(const struct frames *frames, u32 place, struct values *values)
{
    const struct checksum *checksum = &frames->checksums[place];
    u64 sum = checksum->sum;
    if (KNOWN(frames->sizes))
        sum = values->entry[1 + frames->sized_count + place];
    u32 covered = checksum->covered;
    if (KNOWN(checksum->covers_all)) {
        sum += values->sum;
        covered = 0;
    }
    WRITTEN_OUT for (u32 i = 0; i < MOST_FIELDS; i++) {
        KEEP(covered);
        if (!covered)
            break;
        if (KNOWN(covered & 1))
            sum += values->sums[i];
        covered >>= 1;
    }
    u16 result = complement(sum);
    if (KNOWN(checksum->is_udp) && result == 0)
        result = 0xFFFF;
    return __builtin_bswap16(result);
}

/* The word that compensates for the tag and the number in checksums, in network byte order. */
PART u16 compensation(u32 tag_sum, u32 number)
{
    return __builtin_bswap16(complement((u64)tag_sum + (number >> 16) + (number & 0xFFFF)));
}
