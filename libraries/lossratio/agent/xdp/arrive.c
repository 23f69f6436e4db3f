/* SPDX-License-Identifier: Apache-2.0 */
/* The program that receives the frames of connections, at one end. It looks at every frame that arrives on its port.

   At the Responder, it stores the addresses with which each connection is opened; later frames must have the same ones.
   At the Initiator, frames must have the addresses of the traffic profile. It passes all other frames on unchanged. */

#include "frames.h"
#include "connections.h"

enum { IPV4 = 0x0800, ICMP = 1, UNREACHABLE = 3, TRIES = 3 };
enum { OTHERS, OWN };

/* How frames arrive at this end: like those that it sends itself, with source and destination swapped. `ends` has the
   addresses and ports, and `masks` their bits that are the same in all frames. */
struct incoming {
    struct frames frames;
    u32 is_forward, addresses, ethertype, protocol, unreachable, pad;
    u32 ends[3], masks[3];
};

CONSTANT struct incoming END;

/* Whether a frame has the addresses and ports of its connection. */
PART int has_own_ends(u8 *data, struct connection *one, u32 number)
{
    u8 *ends = data + END.addresses;
    if (KNOWN(END.is_forward))
        return AT(u32, ends) == one->source && AT(u32, ends + 4) == one->destination && AT(u32, ends + 8) == one->ports;
    u32 different = 0;
    /* This changes the frame, which nobody will see: it is dropped. */
    AT(u32, ends + 8) ^= (u32)exchange.other_port;
    WRITTEN_OUT for (u32 i = 0; i < 3; i++)
        different |= (AT(u32, ends + 4 * i) ^ END.ends[i]) & END.masks[i];
    struct values values;
    if (!find_values(&END.frames, number, &values))
        return OTHERS;
    ROUNDS(i, 0, MOST_FIELDS, END.frames.field_count) {
        u32 width = END.frames.fields[i].width;
        u8 *place = data + END.frames.fields[i].offset;
        if (KNOWN(width == 4))
            different |= __builtin_bswap32(AT(u32, place)) ^ (u32)values.fields[i];
        else if (KNOWN(width == 2))
            different |= __builtin_bswap16(AT(u16, place)) ^ (u16)values.fields[i];
        else
            different |= *place ^ (u8)values.fields[i];
    }
    return !different;
}

/* Stores the MAC addresses of all answers. */
PART void note_macs(u8 *data)
{
    /* Swapped: the source first, then the destination. */
    u64 source = AT(u16, data + 6) | (u64)AT(u32, data + 8) << 16, destination = AT(u32, data) | (u64)AT(u16, data + 4) << 32;
    u64 macs = source | destination << 48, more = destination >> 16;
    if (!exchange.macs && !exchange.more_macs) {
        exchange.more_macs = more;
        exchange.macs = macs;
    } else if (exchange.macs != macs || exchange.more_macs != more) {
        __sync_fetch_and_add(&exchange.other_macs, 1);
    }
}

/* Counts a frame with the right addresses, in its pass: the first one of its connection, or a copy. */
PART void count_own(struct connection *one, u32 pass)
{
    WRITTEN_OUT for (u32 i = 0; i < TRIES; i++) {
        u32 state = AT(volatile u32, &one->state);
        if ((state & PASSES) != pass)
            break;
        if (__sync_val_compare_and_swap(&one->state, state, (state & ~STRANGE) + 1) != state)
            continue;
        __sync_fetch_and_add(&exchange.arrived, 1);
        if (state & STRANGE)
            __sync_fetch_and_add(&exchange.strangers, -1);
        return;
    }
    __sync_fetch_and_add(&exchange.copies, 1);
}

/* Counts a frame with wrong addresses. If the right one has arrived before, it is a copy. */
PART void count_strange(struct connection *one, u32 pass)
{
    if ((one->state & PASSES) != pass)
        __sync_fetch_and_add(&exchange.copies, 1);
    else if (!(__sync_fetch_and_or(&one->state, STRANGE) & STRANGE))
        __sync_fetch_and_add(&exchange.strangers, 1);
}

/* Counts a frame of the current exchange. */
PART void count(u8 *data, u32 pass)
{
    u32 number = __builtin_bswap32(AT(u32, data + END.frames.tag_offset + 4));
    struct connection *one = connection_of(number);
    int is_current = pass == pass_of(exchange.latest);
    if (RARELY(!one || (is_current && END.is_forward != exchange.is_forward))) {
        __sync_fetch_and_add(&exchange.foreign, 1);
        return;
    }
    if (RARELY(!is_current || exchange.is_over)) {
        if ((one->state & PASSES) == pass && !(__sync_fetch_and_or(&one->state, LATE) & LATE))
            __sync_fetch_and_add(&exchange.late, 1);
        return;
    }
    if (KNOWN(END.is_forward) && pass == 0 && (one->state & PASSES) == 0) {
        u8 *ends = data + END.addresses;
        one->source = AT(u32, ends);
        one->destination = AT(u32, ends + 4);
        one->ports = AT(u32, ends + 8);
        note_macs(data);
        count_own(one, pass);
        return;
    }
    if (has_own_ends(data, one, number))
        count_own(one, pass);
    else
        count_strange(one, pass);
}

/* Counts a frame of an earlier exchange. Returns whether it is one. */
PART int count_late(u32 tag)
{
    WHILE_RUNNING for (u32 i = 0; i < MOST_EARLIER; i++) {
        u32 since = tag - (u32)exchange.first_tags[i];
        if (since >> TAGS_APART_BITS < exchange.passes[i] && !(since & ((1 << TAGS_APART_BITS) - 1))) {
            __sync_fetch_and_add(&exchange.late_frames[i], 1);
            return 1;
        }
    }
    return 0;
}

/* Counts ICMP messages that reject a connection. */
PART void note_rejection(u8 *data)
{
    if (AT(u16, data + END.ethertype) == __builtin_bswap16(IPV4) && data[END.protocol] == ICMP &&
        data[END.unreachable] == UNREACHABLE)
        __sync_fetch_and_add(&exchange.rejections, 1);
}

PROGRAM int arrive(struct xdp_md *context)
{
    u8 *data = DATA(context);
    if (data + END.unreachable + 1 > DATA_END(context))
        return XDP_PASS;
    KEEP(data);
    if (data + END.frames.tag_offset + 8 <= DATA_END(context)) {
        u32 tag = __builtin_bswap32(AT(u32, data + END.frames.tag_offset));
        u64 pass = pass_of(tag);
        if (!RARELY(pass == MOST_PASSES)) {
            count(data, pass);
            return XDP_DROP;
        }
        if (count_late(tag))
            return XDP_DROP;
    }
    if (KNOWN(END.is_forward))
        __sync_fetch_and_add(&exchange.foreign, 1);
    else
        note_rejection(data);
    return XDP_PASS;
}
