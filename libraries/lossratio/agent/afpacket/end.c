/* SPDX-License-Identifier: Apache-2.0 */
/* Drops the frames of a trial after the packet sockets have counted them. Otherwise the node's IP stack would look for
   a route for each of them, in vain. */

#include "program.h"

enum { NEXT = -1, DROP = 2, DIRECTIONS = 0xFF };

/* The context of a program at the ingress of an interface, as the kernel documents it: only what is used here. */
struct sk_buff {
    u32 others[19], data, data_end;
};

extern struct {
    u64 tag;
} present;
/* The place of a frame's tag. */
CONSTANT u32 PLACE;

__attribute__((section("ingress"))) int end(struct sk_buff *context)
{
    u8 *data = DATA(context);
    if (data + PLACE + sizeof(u32) > DATA_END(context))
        return NEXT;
    u32 tag = __builtin_bswap32(*(u32 *)(data + PLACE));
    return (tag ^ (u32)present.tag) & ~DIRECTIONS ? NEXT : DROP;
}
