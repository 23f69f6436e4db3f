/* SPDX-License-Identifier: Apache-2.0 */
/* What all BPF programs of lossratio share: types, functions of the kernel, and a digest of the source. */

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

/* The context of an XDP program, as the kernel documents it. */
struct xdp_md {
    u32 data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex;
};

enum { XDP_ABORTED, XDP_DROP, XDP_PASS, XDP_TX, XDP_REDIRECT };

/* Functions of the kernel. Their numbers are part of its interface. */
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
/* When the kernel loads a program, it knows the constants of the trial, and removes branches that are never taken. For
   this, loops are unrolled and branches must stay branches. Functions are inlined: on a processor with mitigations, a
   return takes ten nanoseconds. */
#define WRITTEN_OUT _Pragma("clang loop unroll(full)")
#define KNOWN(condition) ((condition) && ({ asm volatile(""); 1; }))
/* A loop that is unrolled to `most` rounds. The kernel keeps only those that are needed. */
#define ROUNDS(i, first, most, needed) \
    WRITTEN_OUT for (u32 i = (first), needed_##i = (needed); i < (most) && UP_TO(i, needed_##i); i++)
#define UP_TO(i, needed) ({ KEEP(needed); i < needed; })
#define RARELY(condition) __builtin_expect(!!(condition), 0)
/* Hides a value from the optimizer: the compiler neither recomputes it nor assumes anything about it. */
#define KEEP(value) asm volatile("" : "+r"(value))
#define WHILE_RUNNING _Pragma("clang loop unroll(disable)")

/* A constant. The loader sets it before the kernel verifies the program, so the verifier knows its value. */
#define CONSTANT extern const

#define DATA(context) ((u8 *)(long)(context)->data)
#define DATA_END(context) ((u8 *)(long)(context)->data_end)

/* The digest of all sources: a test uses it to find objects that are older than their sources. */
__attribute__((section("source"), used)) const char SOURCE[] = DIGEST;
