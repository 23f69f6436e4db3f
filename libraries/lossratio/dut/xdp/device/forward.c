/* The programs of the devices: from one interface to another, unchanged, readdressed, filtered, or with faults. */

#include "program.h"

enum { MACS = 12, TYPE = 12, SOURCE_ADDRESS = 26, ADDRESSES_END = 34, IPV4 = 0x0800, TO_ALL = 1 << 3 };
/* The first of the addresses that rules drop, 240.0.0.0: no traffic has them. */
#define FILTERED_FROM 0xF0000000u

extern struct {
    u64 seen, filtered, dropped, duplicated, delayed;
} counts;
/* Source addresses that are dropped, and the leaving interface twice. */
extern u8 filtered, twice;

/* The leaving interface, whether it is a filter, the number of its rules, and whether frames get other MAC addresses. */
CONSTANT u32 LEAVING, IS_FILTER, RULES, HAS_MACS;
CONSTANT u32 NEW_MACS[MACS / 4];
/* One frame of EVERY has each of the faults: the one with this rest. */
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

PROGRAM int forward(struct xdp_md *context)
{
    if (IS_FILTER && is_filtered(context)) {
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
