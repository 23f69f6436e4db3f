/* SPDX-License-Identifier: Apache-2.0 */
/* Ends the way of a trial's own frames behind the packet sockets that count them: the node's IP stack would look for a
   route for each of them, and find none. */

#include "program.h"

enum { NEXT = -1, DROP = 2, DIRECTIONS = 0xFF };

/* The context of a program at the ingress of an interface, as the kernel documents it, as far as it is used. */
struct sk_buff {
    u32 others[19], data, data_end;
};

extern struct {
    u64 tag;
} present;
/* Where a frame's tag is. */
CONSTANT u32 PLACE;

__attribute__((section("ingress"))) int end(struct sk_buff *context)
{
    u8 *data = DATA(context);
    if (data + PLACE + sizeof(u32) > DATA_END(context))
        return NEXT;
    u32 tag = __builtin_bswap32(*(u32 *)(data + PLACE));
    return (tag ^ (u32)present.tag) & ~DIRECTIONS ? NEXT : DROP;
}
