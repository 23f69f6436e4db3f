/* SPDX-License-Identifier: Apache-2.0 */
/* The program that sends one frame over each connection. The first pass opens the connections; later ones use those
   whose frames have arrived.

   The Initiator sends the frames of the traffic profile, one for each number of a connection. The Responder's frames go
   back to where the Initiator's came from. */

#include "sending.h"
#include "connections.h"

enum { AT_ONCE = 16 };

/* One end's frames, the place of their addresses (the ports follow), and the places of checksums over these. */
struct outgoing {
    struct frames frames;
    u32 interface, is_forward, addresses, checksum, pseudo_checksum, pad;
};

CONSTANT struct outgoing END;

/* Finds the connection that sends next. This happens while no frame is due, as in most runs, and so delays no frame. */
PART struct connection *find_next(u64 *number)
{
    u64 pass = pass_of(exchange.latest), next = exchange.cursor;
    WRITTEN_OUT for (u32 i = 0; i < AT_ONCE; i++) {
        struct connection *one = connection_of(next);
        if (!one)
            break;
        if ((one->state & PASSES) == pass) {
            exchange.cursor = *number = next;
            return one;
        }
        next++;
    }
    exchange.cursor = next;
    return 0;
}

PART u64 sum_of_words(u32 words)
{
    return (words & 0xFFFF) + (words >> 16);
}

/* Updates a checksum after words that it covers have changed (RFC 1624). */
PART void renew_checksum(u8 *place, u64 before, u64 now, int is_udp)
{
    u64 sum = (u16)~AT(u16, place) + folded(folded(~before & 0xFFFFFFFF)) + folded(now);
    u16 checksum = complement(folded(sum));
    if (is_udp && checksum == 0)
        checksum = 0xFFFF;
    AT(u16, place) = checksum;
}

/* Readdresses a frame to where the connection's first frame came from. */
PART int turn_round(struct xdp_md *context, struct connection *one)
{
    u8 *data = DATA(context), *ends = data + END.addresses;
    if (RARELY(data + END.frames.direct > DATA_END(context)))
        return 0;
    KEEP(ends);
    u32 ports = (one->ports >> 16 | one->ports << 16) ^ (u32)exchange.other_port;
    u64 before = sum_of_words(AT(u32, ends)) + sum_of_words(AT(u32, ends + 4));
    u64 now = sum_of_words(one->source) + sum_of_words(one->destination);
    renew_checksum(data + END.checksum, before, now, 0);
    before += sum_of_words(AT(u32, ends + 8));
    renew_checksum(data + END.pseudo_checksum, before, now + sum_of_words(ports), 1);
    AT(u64, data) = exchange.macs;
    AT(u32, data + 8) = exchange.more_macs;
    AT(u32, ends) = one->destination;
    AT(u32, ends + 4) = one->source;
    AT(u32, ends + 8) = ports;
    return 1;
}

PROGRAM int connect(struct xdp_md *context)
{
    u64 now = ktime_get_ns(), number;
    sending.clock = now;
    struct connection *one = find_next(&number);
    if (RARELY(now < sending.start || now >= sending.until || !one))
        return XDP_DROP;
    u64 elapsed = now - sending.start, *due = sending.dues, frame;
    if (RARELY(elapsed < *due))
        return XDP_DROP;
    struct segment *segment = take_due(sending.schedules, due, elapsed, &frame, 1);
    if (RARELY(!segment))
        return XDP_DROP;
    exchange.cursor = number + 1;
    if (RARELY(!write_frame(context, &END.frames, number, segment, number)))
        return XDP_DROP;
    if (!KNOWN(END.is_forward) && RARELY(!turn_round(context, one)))
        return XDP_DROP;
    return redirect(END.interface, 0);
}
