/* SPDX-License-Identifier: Apache-2.0 */
/* The program of XDP devices: it forwards frames to another interface (unchanged, readdressed, filtered, or with
   faults), or reflects them. */

#include "program.h"

enum { MACS = 12, TYPE = 12, SOURCE_ADDRESS = 26, ADDRESSES_END = 34, IPV4 = 0x0800, TO_ALL = 1 << 3 };
enum { PLAIN_IPV4 = 0x45, VERSION = 14, PROTOCOL = 23, PORTS_END = 38, TCP = 6, UDP = 17, NEW_ONLY = 1 };
enum { IPV6 = 0x86DD, DOT1Q = 0x8100, DOT1AD = 0x88A8, TAG = 4, MOST_TAGS = 2, IPV4_SOURCE = 14, IPV6_SOURCE = 10 };
/* The first of the addresses that rules drop, 240.0.0.0: no traffic uses them. */
#define FILTERED_FROM 0xF0000000u

extern struct {
    u64 seen, filtered, dropped, duplicated, delayed;
} counts;
/* Maps: source addresses to drop, the outgoing interface twice (for duplicates), and connections. */
extern u8 filtered, twice, connections;

/* The outgoing interface; whether the program is a filter, with how many rules; whether frames get new MAC addresses;
   whether frames are reflected; whether only frames of connections pass; whether frames open connections. */
CONSTANT u32 LEAVING, IS_FILTER, RULES, HAS_MACS, REFLECTS, KEEPS, OPENS;
CONSTANT u32 NEW_MACS[MACS / 4];
/* Of EVERY frames, one has each of the faults: the one whose number has this remainder. */
CONSTANT u64 EVERY, DROPPED, DUPLICATED, DELAYED;

PART int is_filtered(struct xdp_md *context)
{
    u8 *data = DATA(context);
    if (data + ADDRESSES_END > DATA_END(context) || *(u16 *)(data + TYPE) != __builtin_bswap16(IPV4))
        return 0;
    u32 source = *(u32 *)(data + SOURCE_ADDRESS);
    u32 address = __builtin_bswap32(source);
    WHILE_RUNNING for (u32 rule = 0; rule < RULES; rule++) {
        u32 dropped = FILTERED_FROM + rule;
        KEEP(dropped);
        if (address == dropped)
            return 1;
    }
    return map_lookup_elem(&filtered, &source) != 0;
}

/* Whether a UDP or TCP frame over IPv4 belongs to no connection, and cannot open one. The key of a connection has the
   addresses and ports of the frame that opened it. */
PART int is_refused(struct xdp_md *context)
{
    u8 *data = DATA(context);
    if (data + PORTS_END > DATA_END(context) || *(u16 *)(data + TYPE) != __builtin_bswap16(IPV4) ||
        data[VERSION] != PLAIN_IPV4 || (data[PROTOCOL] != UDP && data[PROTOCOL] != TCP))
        return 0;
    u32 source = *(u32 *)(data + SOURCE_ADDRESS), destination = *(u32 *)(data + SOURCE_ADDRESS + 4);
    u32 ports = *(u32 *)(data + ADDRESSES_END), opened = 0;
    u32 sent[] = {source, destination, ports, data[PROTOCOL]};
    u32 answered[] = {destination, source, ports << 16 | ports >> 16, data[PROTOCOL]};
    if (!OPENS)
        return !map_lookup_elem(&connections, answered);
    return !map_lookup_elem(&connections, sent) && map_update_elem(&connections, sent, &opened, NEW_ONLY);
}

PART void swap(u8 *one, u32 words)
{
    u16 *place = (u16 *)one;
    WRITTEN_OUT for (u32 i = 0; i < words; i++) {
        u16 first = place[i];
        place[i] = place[i + words];
        place[i + words] = first;
    }
}

/* Reflects an IP packet: swaps its MAC addresses and its IP addresses, which changes no checksum. Other frames stay as
   they are. It leaves by redirect, like all frames: after XDP_TX, a veth wakes its other end only if that has a
   program, too. */
PART int turn_round(struct xdp_md *context)
{
    u8 *data = DATA(context), *end = DATA_END(context), *type = data + TYPE;
    WRITTEN_OUT for (u32 tag = 0; tag < MOST_TAGS; tag++) {
        if (type + 2 > end)
            return 0;
        u16 found = __builtin_bswap16(*(u16 *)type);
        if (found != DOT1Q && found != DOT1AD)
            break;
        type += TAG;
    }
    if (type + 2 > end || *data & 1)
        return 0;
    if (*(u16 *)type == __builtin_bswap16(IPV4)) {
        if (type + IPV4_SOURCE + 8 > end)
            return 0;
        swap(type + IPV4_SOURCE, 2);
    } else if (*(u16 *)type == __builtin_bswap16(IPV6)) {
        if (type + IPV6_SOURCE + 32 > end)
            return 0;
        swap(type + IPV6_SOURCE, 8);
    } else {
        return 0;
    }
    swap(data, MACS / 4);
    return 1;
}

PROGRAM int forward(struct xdp_md *context)
{
    if (REFLECTS && !turn_round(context))
        return XDP_PASS;
    if ((IS_FILTER && is_filtered(context)) || (KEEPS && is_refused(context))) {
        __sync_fetch_and_add(&counts.filtered, 1);
        return XDP_DROP;
    }
    if (HAS_MACS) {
        u32 *data = (u32 *)DATA(context);
        if (data + MACS / 4 > (u32 *)DATA_END(context))
            return XDP_ABORTED;
        for (u32 i = 0; i < MACS / 4; i++)
            data[i] = NEW_MACS[i];
    }
    u64 number = __sync_fetch_and_add(&counts.seen, 1) % EVERY;
    if (number == DROPPED) {
        __sync_fetch_and_add(&counts.dropped, 1);
        return XDP_DROP;
    }
    if (KNOWN(DUPLICATED < EVERY) && number == DUPLICATED) {
        __sync_fetch_and_add(&counts.duplicated, 1);
        return redirect_map(&twice, 0, TO_ALL);
    }
    if (number == DELAYED) {
        __sync_fetch_and_add(&counts.delayed, 1);
        return XDP_PASS;
    }
    return redirect(LEAVING, 0);
}
