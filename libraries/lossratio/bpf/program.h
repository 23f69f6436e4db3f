/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later */
/* What programs of lossratio in restricted C share: types, functions of the kernel, and a digest of their source. */

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

/* The context of an XDP program, as the kernel documents it. */
struct xdp_md {
    u32 data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex;
};

enum { XDP_ABORTED, XDP_DROP, XDP_PASS, XDP_TX, XDP_REDIRECT };

/* Functions of the kernel; their numbers are a part of its interface. */
static void *(*const map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static u64 (*const ktime_get_ns)(void) = (void *)5;
static u32 (*const get_smp_processor_id)(void) = (void *)8;
static long (*const redirect)(u32 interface, u64 flags) = (void *)23;
static long (*const redirect_map)(void *map, u64 key, u64 flags) = (void *)51;
static long (*const xdp_adjust_tail)(struct xdp_md *context, int bytes) = (void *)65;
static long (*const xdp_store_bytes)(struct xdp_md *context, u32 offset, void *from, u32 bytes) = (void *)190;

#define PROGRAM __attribute__((section("xdp")))
#define PART static inline __attribute__((always_inline))
/* Code for the constants of a trial: the kernel, which knows these, leaves out branches that are never taken. So loops are
   written out, branches stay branches, and there is no function to call: that takes ten nanoseconds where the processor
   needs safe returns. */
#define WRITTEN_OUT _Pragma("clang loop unroll(full)")
#define KNOWN(condition) ((condition) && ({ asm volatile(""); 1; }))
/* A loop that is written out for `most` rounds, of which the kernel leaves those that are needed. */
#define ROUNDS(i, first, most, needed) \
    WRITTEN_OUT for (u32 i = (first), needed_##i = (needed); i < (most) && UP_TO(i, needed_##i); i++)
#define UP_TO(i, needed) ({ KEEP(needed); i < needed; })
#define RARELY(condition) __builtin_expect(!!(condition), 0)
/* A value that the compiler neither computes again nor knows something about. */
#define KEEP(value) asm volatile("" : "+r"(value))
#define WHILE_RUNNING _Pragma("clang loop unroll(disable)")

/* A constant that the loader writes before the kernel verifies the program, so that its value is known there. */
#define CONSTANT extern const

#define DATA(context) ((u8 *)(long)(context)->data)
#define DATA_END(context) ((u8 *)(long)(context)->data_end)

/* Of all sources, so that no object is older than these: a test compares it. */
__attribute__((section("source"), used)) const char SOURCE[] = DIGEST;
