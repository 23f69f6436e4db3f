/* SPDX-License-Identifier: Apache-2.0 */
/* Forwards frames between two interfaces, and loses some of them in a known way. Constants of the compiler's command
   line say how; all times are in nanoseconds:

   COST, HOLDS   One token bucket for each of QUEUES queues gains a token each COST, and holds HOLDS tokens. A frame (or
                 batch of frames) without a token is lost.
   QUEUES        Each frame goes to a queue at random.
   BATCH         This many frames are forwarded or lost together. After a gap of GAP, a new batch begins.
   PERIOD, PAUSE Each PERIOD begins with a pause. A ring holds RING frames of a pause, and the others are lost. */

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#ifndef QUEUES
#define QUEUES 1
#endif
#ifndef BATCH
#define BATCH 1
#endif
#define GAP 50000000ull

struct device {
    __u64 received, lost;
    /* When each bucket will be full. */
    __u64 full[QUEUES];
    /* When the last frame came, in which period, and how many frames the ring then held. */
    __u64 last, period, held;
    /* Frames of the present batch, and whether they are lost. */
    __u64 begun, loses;
};

struct {
    __uint(type, BPF_MAP_TYPE_DEVMAP);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u32);
} way_out SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct device);
} states SEC(".maps");

#ifdef COST
static __always_inline int lacks_token(struct device *device, __u64 now)
{
    __u64 queue = QUEUES > 1 ? bpf_get_prandom_u32() % QUEUES : 0;
    __u64 *full = &device->full[queue];
    if (*full < now)
        *full = now;
    if (*full + COST > now + HOLDS * COST)
        return 1;
    *full += COST;
    return 0;
}

static __always_inline int is_lost(struct device *device, __u64 now)
{
    if (BATCH == 1)
        return lacks_token(device, now);
    if (device->begun == BATCH || now > device->last + GAP)
        device->begun = 0;
    if (device->begun == 0)
        device->loses = lacks_token(device, now);
    device->begun++;
    device->last = now;
    return device->loses;
}
#else
static __always_inline int is_lost(struct device *device, __u64 now)
{
    if (now % PERIOD >= PAUSE)
        return 0;
    if (device->period != now / PERIOD) {
        device->period = now / PERIOD;
        device->held = 0;
    }
    return ++device->held > RING;
}
#endif

SEC("xdp")
int forward(struct xdp_md *frame)
{
    __u32 only = 0;
    struct device *device = bpf_map_lookup_elem(&states, &only);
    if (!device)
        return XDP_ABORTED;
    /* Neighbour discovery and the like are neither counted nor lost. */
    __u8 *data = (void *)(long)frame->data;
    if (data + 14 > (__u8 *)(long)frame->data_end || data[12] != 0x08 || data[13] != 0x00)
        return bpf_redirect_map(&way_out, 0, 0);
    device->received++;
    if (is_lost(device, bpf_ktime_get_ns())) {
        device->lost++;
        return XDP_DROP;
    }
    return bpf_redirect_map(&way_out, 0, 0);
}

char _license[] SEC("license") = "Apache-2.0";
