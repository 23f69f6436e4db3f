/* SPDX-License-Identifier: Apache-2.0 */
/* The program that sends. The kernel runs it again and again; each run reads the clock, and sends the frame that is
   due. */

#include "sending.h"

/* One sender's frames in one direction. */
struct stream {
    struct frames frames;
    u32 interface, first, step, ring;
};

CONSTANT u32 STREAMS;
CONSTANT struct stream STREAM[MOST_WAYS];

PART int send_frame(struct xdp_md *context, struct schedule *schedule, const struct stream *stream, u64 *due, u64 elapsed,
                    u64 now)
{
    u64 number;
    struct segment *segment = take_due(schedule, due, elapsed, &number, 0);
    if (RARELY(!segment))
        return XDP_DROP;
    if (RARELY(!write_frame(context, &stream->frames, number * stream->step + stream->first, segment, number)))
        return XDP_DROP;
    *entry_of(stream->ring, number) = now << WRAP_BITS | (((u32)number >> RING_BITS) + 1);
    return redirect(stream->interface, 0);
}

PROGRAM int send(struct xdp_md *context)
{
    u64 now = ktime_get_ns();
    sending.clock = now;
    if (RARELY(now < sending.start || now >= sending.until))
        return XDP_DROP;
    u64 elapsed = now - sending.start;
    /* The stream whose next frame is due first. So all streams are equally late in overload. */
    u64 due = sending.dues[0], first = 0;
    WHILE_RUNNING for (u64 i = 1; i < STREAMS; i++) {
        if (sending.dues[i] < due) {
            due = sending.dues[i];
            first = i;
        }
    }
    if (RARELY(elapsed < due))
        return XDP_DROP;
    struct schedule *schedule = sending.schedules;
    const struct stream *stream = STREAM;
    u64 *place = sending.dues;
    WRITTEN_OUT for (u32 i = 1; i < MOST_WAYS; i++) {
        if (KNOWN(i == first)) {
            schedule = &sending.schedules[i];
            stream = &STREAM[i];
            place = &sending.dues[i];
        }
        KEEP(schedule);
        KEEP(stream);
        KEEP(place);
        if (i >= first)
            break;
    }
    return send_frame(context, schedule, stream, place, elapsed, now);
}
