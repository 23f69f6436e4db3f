/* SPDX-License-Identifier: Apache-2.0 */
/* What all sending programs share: schedules, and how a frame is written.

   The agent writes what to send into shared memory: a schedule of segments for each stream. The program counts in each
   segment what it has sent. */

#include "frames.h"

enum { MOST_SEGMENTS = 64, FRACTION_BITS = 20, SLACK_BITS = 3, LONGEST_LATENESS_BITS = 43 };
#define FOREVER (~0ULL)

struct segment {
    /* Times are in nanoseconds, and their fractions in units of 2^-32 ns. */
    u64 interval, interval_fraction, frames, begin, begin_fraction, last_call, catch_up;
    u32 tag, tag_sum;
    /* The number of its first frame, or FOREVER: it continues the numbers of the previous segment. */
    u64 first;
    /* Whether a stall delays everything that follows, so that no frame is left out. */
    u64 is_patient;
    u64 sent, unsent, lateness, last;
};

struct schedule {
    u64 left, number, index, fraction;
    struct segment segments[MOST_SEGMENTS];
};

struct sending {
    u64 start, until, clock;
    /* When each stream's next frame is due, from the start. */
    u64 dues[MOST_WAYS];
    struct schedule schedules[];
};

extern struct sending sending;

PART void begin_next_segment(struct schedule *schedule, u64 *due)
{
    u64 index = ++schedule->index;
    if (index < MOST_SEGMENTS && (schedule->left = schedule->segments[index].frames)) {
        struct segment *next = &schedule->segments[index];
        *due = next->begin;
        schedule->fraction = next->begin_fraction;
        if (next->first != FOREVER)
            schedule->number = next->first;
    } else {
        *due = FOREVER;
    }
}

PART void advance(struct schedule *schedule, struct segment *segment, u64 *due, u64 frames)
{
    u64 fraction = schedule->fraction + frames * segment->interval_fraction;
    schedule->fraction = (u32)fraction;
    *due += frames * segment->interval + (fraction >> 32);
    schedule->left -= frames;
    if (RARELY(schedule->left == 0))
        begin_next_segment(schedule, due);
}

/* Leaves out the frames that are too late, and a few more than necessary. Otherwise, of two streams in overload, each
   would leave out one frame whenever the other one sends. */
PART void leave_out(struct schedule *schedule, struct segment *segment, u64 *due, u64 late)
{
    u64 interval = segment->interval << FRACTION_BITS | segment->interval_fraction >> (32 - FRACTION_BITS);
    u64 excess = late - segment->catch_up + (segment->catch_up >> SLACK_BITS);
    if (excess >> LONGEST_LATENESS_BITS)
        excess = 1ULL << LONGEST_LATENESS_BITS;
    u64 frames = (excess << FRACTION_BITS) / interval + 1;
    if (frames > schedule->left)
        frames = schedule->left;
    segment->unsent += frames;
    advance(schedule, segment, due, frames);
}

/* Takes the frame that is due, and writes its number. Returns its segment, or 0 if the frame is too late. Only programs
   with `may_wait` have patient segments. */
PART struct segment *take_due(struct schedule *schedule, u64 *due, u64 elapsed, u64 *number, int may_wait)
{
    u64 late = elapsed - *due;
    u64 index = schedule->index;
    if (RARELY(index >= MOST_SEGMENTS))
        return 0;
    struct segment *segment = &schedule->segments[index];
    KEEP(segment);
    if (RARELY(elapsed > segment->last_call)) {
        u64 left = schedule->left;
        segment->unsent += left;
        advance(schedule, segment, due, left);
        return 0;
    }
    if (RARELY(late > segment->lateness))
        segment->lateness = late;
    if (RARELY(late > segment->catch_up)) {
        if (!may_wait || !segment->is_patient) {
            leave_out(schedule, segment, due, late);
            return 0;
        }
        *due += late - segment->catch_up;
    }
    *number = schedule->number++;
    segment->last = elapsed;
    segment->sent++;
    advance(schedule, segment, due, 1);
    return segment;
}

PART int write_frame(struct xdp_md *context, const struct frames *frames, u32 order, struct segment *segment, u32 number)
{
    struct values values;
    u32 direct = frames->direct, longest = frames->longest;
    if (KNOWN(frames->sizes)) {
        if (!find_size(frames, order, &values))
            return 0;
        xdp_adjust_tail(context, values.entry[0] - longest);
    }
    if (KNOWN(longest > direct)) {
        u64 rest = longest - direct;
        if (KNOWN(frames->sizes))
            rest = values.entry[0] - direct;
        if (rest != 0 && rest <= longest - direct)
            xdp_store_bytes(context, direct, contents + frames->contents + direct, rest);
    }
    u8 *data = DATA(context);
    if (RARELY(data + direct > DATA_END(context)))
        return 0;
    KEEP(data);
    u32 words = frames->words_count;
#define WRITE(i) AT(u64, data + 8 * i) = frames->words[i];
    ALL_WORDS(words, written, WRITE)
written:
    if (KNOWN(direct % 8))
        AT(u64, data + direct - 8) = frames->tail;
    ROUNDS(i, 0, MOST_SIZED, frames->sized_count) {
        AT(u16, data + frames->sized[i].offset) = values.entry[1 + i];
    }
    if (!find_values(frames, order, &values))
        return 0;
    ROUNDS(i, 0, MOST_FIELDS, frames->field_count) {
        u32 width = frames->fields[i].width;
        u8 *place = data + frames->fields[i].offset;
        if (KNOWN(width == 8))
            AT(u64, place) = __builtin_bswap64(values.fields[i]);
        else if (KNOWN(width == 4))
            AT(u32, place) = __builtin_bswap32(values.fields[i]);
        else if (KNOWN(width == 2))
            AT(u16, place) = __builtin_bswap16(values.fields[i]);
        else
            *place = values.fields[i];
    }
    ROUNDS(i, 0, MOST_CHECKSUMS, frames->checksum_count) {
        AT(u16, data + frames->checksums[i].offset) = compute(frames, i, &values);
    }
    u8 *tag = data + frames->tag_offset;
    AT(u32, tag) = segment->tag;
    if (KNOWN(!frames->is_numbered)) {
        AT(u32, tag + 4) = ~segment->tag;
        return 1;
    }
    AT(u32, tag + 4) = __builtin_bswap32(number);
    if (KNOWN(frames->compensation))
        AT(u16, data + frames->compensation) = compensation(segment->tag_sum, number);
    return 1;
}
