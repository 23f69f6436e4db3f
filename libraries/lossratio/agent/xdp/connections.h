/* SPDX-License-Identifier: Apache-2.0 */
/* Connections, over which frames are sent in passes: each pass sends one frame over each connection, all in one
   direction.

   The first pass opens the connections. The sending and the receiving programs of both ends share this state. */

enum { PASSES = 0xFF, STRANGE = 0x100, LATE = 0x200, TAGS_APART_BITS = 8, MOST_PASSES = 256, MOST_EARLIER = 64 };

/* A connection: the addresses and ports with which its first frame arrived, in network byte order. The lower bits of
   `state` count the frames that arrived in their passes. Two more bits say that a frame came with wrong addresses, or
   late. */
struct connection {
    u32 source, destination;
    u32 ports, state;
};

struct exchange {
    /* The tags of the first pass and of the current one. Tags of successive passes differ by 2^TAGS_APART_BITS. */
    u64 first, latest;
    /* Whether the Initiator sends this pass, and whether the pass is over: further frames of it are late. */
    u64 is_forward, is_over;
    /* How many connections there are, and where to look for the next one to send. */
    u64 count, cursor;
    /* The bits in which the port that answers differs from the port that the connection was opened to, in network byte
       order. */
    u64 other_port;
    /* The MAC addresses of answers: those of the first frame that arrived, swapped. */
    u64 macs, more_macs;
    /* Connections whose frames arrived in this pass; further copies of these frames; connections that received only
       frames with wrong addresses. */
    u64 arrived, copies, strangers;
    /* Connections whose frame came late; frames of no connection; frames that reject a connection; frames with other
       MAC addresses than the first one. */
    u64 late, foreign, rejections, other_macs;
    /* For each earlier exchange: its first tag, its number of passes, and how many of its frames came late. */
    u64 first_tags[MOST_EARLIER], passes[MOST_EARLIER], late_frames[MOST_EARLIER];
};

extern struct exchange exchange;
extern struct connection connections[];

/* The number of connections for which there is memory. */
CONSTANT u32 ROOM;

/* A connection by its number, or 0 if there is none. */
PART struct connection *connection_of(u64 number)
{
    if (number >= exchange.count || number >= ROOM)
        return 0;
    /* The address must be computed after the check of bounds, or the verifier refuses it. */
    KEEP(number);
    return &connections[number];
}

/* The pass that a tag belongs to, from 0, or MOST_PASSES if it belongs to no pass of this exchange. */
PART u64 pass_of(u32 tag)
{
    u32 since = tag - (u32)exchange.first;
    if (since > (u32)exchange.latest - (u32)exchange.first || since & ((1 << TAGS_APART_BITS) - 1))
        return MOST_PASSES;
    return since >> TAGS_APART_BITS;
}
