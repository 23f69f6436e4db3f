/* SPDX-License-Identifier: Apache-2.0 */
/* The program that receives. It looks at every frame that arrives on a port.

   It counts the frames with a tag of this agent, compares them with what was sent, and drops them. It passes all others
   on unchanged. */

#include "frames.h"

enum { QUEUES = 64, GAP_BITS = 10, MOST_GAPS = 1 << GAP_BITS, SUB_BITS = 7, MOST_BITS = 34, INTERVALS = (MOST_BITS - SUB_BITS + 1) << SUB_BITS };
enum { STREAM_BITS = 0xFF, VLAN_TAG_BYTES = 4, BLOCK = 64, MANY = 1 << 16 };
/* Tags that each traffic uses (one for its ramp, one for the rest, for every stream); how many earlier traffics are
   known. */
enum { TAGS_OF_TRAFFIC = 2 * (STREAM_BITS + 1), MOST_TRAFFIC = 64 };
/* What `look` returns besides verdicts. */
enum { NO_TAG = 16, OF_OTHERS };
enum { INTACT, CORRUPTED, READDRESSED };

/* Missing numbers before one that arrived: from `start` up to but not including `end`; after how many frames, and
   when. */
struct gap {
    u64 start, end, position, time;
};

/* For a receive queue: the number after the highest one that has arrived, and how many frames and gaps there were. A
   card spreads flows over its queues. Frames of different queues arrive in no order, perhaps on different
   processors. */
struct order {
    u64 next, position, gap_count;
};

struct stream {
    /* In network byte order, and the sum of its two words. */
    u32 tag, tag_sum;
    /* Frames of other streams, and frames without a known tag. */
    u64 strayed, foreign;
    struct order orders[QUEUES];
    /* Late frames of each earlier traffic. */
    u64 late[MOST_TRAFFIC];
};

struct reception {
    /* Tags without the bits of the stream: of the frames to examine, and of the latest traffic. While counters are
       being reset, no frames are examined. */
    u64 family, latest;
    struct stream streams[];
};

/* Latencies of intact frames on one processor, and how many of the frames were reordered or duplicated. */
struct latencies {
    u64 sum, least, most, reordered, duplicated;
    u64 histogram[INTERVALS];
};

/* What was found of a stream on one processor. If the profile has streams of its own, their latencies are kept
   elsewhere. */
struct counters {
    u64 arrived, wrong_length, wrong_mac, corrupted, readdressed, duplicated, stale, intact;
    u64 reordered, displacement, extent, late_offset;
    u64 jitter_sum, jitter_count, next_in_turn, last_latency;
    struct latencies latencies;
};

extern struct reception reception;
extern struct counters counters[];
/* For each of the profile's streams, on each processor. */
extern struct latencies stream_latencies[];
/* The latest gaps of each queue of each stream. There are many, since a queue misses the frames of all other queues. */
extern struct gap gaps[];

/* The frames of one direction, and the streams that send them. */
struct way {
    struct frames frames;
    /* The port's MAC address. */
    u32 mac;
    /* MANY if frames have many MAC addresses. */
    u32 mac_end;
    /* The number of its first stream; how many streams there are; the first stream's frames, as first number and
       step. */
    u32 number, streams, first, step;
    /* Whether another node sends them. Then the times of sending are at that node's agent. */
    u32 is_elsewhere;
    /* The place in `contents` of a table that says which of the profile's streams each flow belongs to; whether there
       is one; the place of the first stream's latencies. */
    u32 streams_of_flows, has_streams, first_latencies;
    /* One bit for each possible length of frames. */
    u64 lengths[LONGEST_FRAME / 64];
};

CONSTANT u32 WAYS, ALL_STREAMS, PROCESSORS, ALL_LATENCIES;
CONSTANT struct way WAY[MOST_WAYS];

PART void raise_to(u64 *most, u64 value)
{
    if (RARELY(value > *most))
        *most = value;
}

PART void count_latency(struct counters *counters, struct latencies *latencies, u64 latency, u64 number)
{
    latencies->sum += latency;
    if (RARELY(latency < latencies->least))
        latencies->least = latency;
    raise_to(&latencies->most, latency);
    if (counters->next_in_turn == number) {
        long long jitter = counters->last_latency - latency;
        counters->jitter_sum += jitter < 0 ? -jitter : jitter;
        counters->jitter_count++;
    }
    counters->next_in_turn = (u32)number + 1;
    counters->last_latency = latency;
    /* Intervals are 1 ns wide up to 128 ns; above, each power of two has 128 intervals. */
    if (KNOWN(latency >> MOST_BITS))
        latency = (1ULL << MOST_BITS) - 1;
    u64 interval = 0;
    WRITTEN_OUT for (u32 half = 16; half; half /= 2) {
        if (KNOWN(latency >> (SUB_BITS + half))) {
            latency >>= half;
            interval += half << SUB_BITS;
        }
    }
    interval += latency;
    if (interval < INTERVALS)
        latencies->histogram[interval]++;
}

/* The latencies that a frame of a flow is counted in. */
PART struct latencies *latencies_of(const struct way *way, struct counters *here, u64 cpu, u64 flow)
{
    if (!KNOWN(way->has_streams))
        return &here->latencies;
    if (flow >= way->frames.flows)
        return &here->latencies;
    u64 place = cpu * ALL_LATENCIES + way->first_latencies + contents[way->streams_of_flows + flow];
    if (place >= PROCESSORS * ALL_LATENCIES)
        return &here->latencies;
    /* The address must be computed after the check of bounds, or the verifier refuses it. */
    KEEP(place);
    return &stream_latencies[place];
}

/* Finds the gap that a number was missing in: the latest one that begins at this number or before. The gaps are sorted,
   so this is a binary search. */
PART struct gap *find_gap(struct gap *own, u64 gap_count, u32 number)
{
    u32 back = 1;
    WRITTEN_OUT for (u32 step = MOST_GAPS / 2; step; step /= 2) {
        u32 further = back + step;
        KEEP(further);
        if (further <= gap_count && (int)(number - (u32)own[(gap_count - further + 1) & (MOST_GAPS - 1)].start) < 0)
            back = further;
    }
    return &own[(gap_count - back) & (MOST_GAPS - 1)];
}

/* The gaps of a queue of a stream. */
PART struct gap *gaps_of(u64 stream, u64 queue)
{
    struct gap *of_queues = &gaps[stream * QUEUES << GAP_BITS];
    KEEP(of_queues);
    return &of_queues[queue << GAP_BITS];
}

/* Finds out whether a frame arrived after one with a higher number in its queue (RFC 4737). Numbers wrap at 2^32. */
PART void note_order(struct order *order, u64 stream, u64 queue, struct counters *counters, struct latencies *latencies, u32 number, u64 now)
{
    u64 position = ++order->position;
    u32 next = order->next;
    int ahead = number - next;
    if (!RARELY(ahead < 0)) {
        if (RARELY(ahead > 0)) {
            /* Some numbers are missing: these frames are lost, or will be late. */
            struct gap *gap = &gaps_of(stream, queue)[order->gap_count++ & (MOST_GAPS - 1)];
            gap->start = next;
            gap->end = number;
            gap->position = position;
            gap->time = now;
        }
        order->next = number + 1;
        return;
    }
    counters->reordered++;
    latencies->reordered++;
    raise_to(&counters->displacement, (u32)(next - number - 1));
    u64 gap_count = order->gap_count;
    if (!gap_count)
        return;
    struct gap *gap = find_gap(gaps_of(stream, queue), gap_count, number);
    if ((u32)(number - gap->start) < (u32)(gap->end - gap->start)) {
        raise_to(&counters->extent, position - gap->position);
        raise_to(&counters->late_offset, now - gap->time);
    }
}

/* The sum of words, and the sum of all sums so far, which depends on the order of words, too (as in Fletcher's
   checksum). */
struct sums {
    u64 sum, of_sums;
};

PART void add_block(struct sums *sums, u8 *block)
{
    WRITTEN_OUT for (u32 word = 0; word < BLOCK / 8; word++) {
        sums->sum += ((u64 *)block)[word];
        sums->of_sums += sums->sum;
    }
}

/* Whether the bytes after the beginning are those that were sent. What follows a loop must not depend on its number of
   rounds, since the kernel would verify it for each number again. */
PART int has_right_contents(struct xdp_md *context, const struct frames *frames, u32 lost, u64 place_of_size)
{
    struct sums *right = (struct sums *)(contents + frames->sums) + place_of_size, sums = {0, 0};
    u32 direct = frames->direct;
    u8 *frame = DATA(context) - lost, *end = DATA_END(context);
    WHILE_RUNNING for (u32 i = 0, place = direct; i < LONGEST_FRAME / BLOCK; i++, place += BLOCK) {
        if (place > LONGEST_FRAME - BLOCK || frame + place + BLOCK > end)
            break;
        add_block(&sums, frame + place);
    }
    u8 *again = (u8 *)(long)*(volatile u32 *)&context->data;
    u64 length = DATA_END(context) - again + lost;
    if (length >= LONGEST_FRAME)
        return 0;
    if (length >= direct + BLOCK) {
        /* The last block overlaps the one before it. */
        u64 place = length - BLOCK - lost;
        KEEP(place);
        if (place >= LONGEST_FRAME)
            return 0;
        u8 *last = again + place;
        KEEP(last);
        if (last + BLOCK > DATA_END(context))
            return 0;
        add_block(&sums, last);
        return sums.sum == right->sum && sums.of_sums == right->of_sums;
    }
    int is_right = 1;
    WHILE_RUNNING for (u32 i = 0; i < BLOCK; i++) {
        if (again + (direct + i - lost) + 1 > DATA_END(context))
            break;
        is_right &= again[direct + i - lost] == contents[frames->contents + direct + i];
    }
    return is_right;
}

/* Reads a field's value. */
PART u64 load(u8 *place, u32 width)
{
    if (KNOWN(width == 8))
        return __builtin_bswap64(AT(u64, place));
    if (KNOWN(width == 4))
        return __builtin_bswap32(AT(u32, place));
    if (KNOWN(width == 2))
        return __builtin_bswap16(AT(u16, place));
    return *place;
}

/* The bits in which a frame differs from the one that was sent, apart from checksums and sizes; or only those of
   addresses. */
PART u64 differences(u8 *frame, const struct frames *frames, struct values *values, u32 lost, int of_addresses)
{
    u64 different = 0;
    u32 words = frames->words_count;
#define COMPARE(i) \
    if (i > 1 || !lost) \
        different |= (AT(u64, frame + 8 * i) ^ frames->words[i]) & (of_addresses ? frames->addresses[i] : frames->masks[i]);
    /* The first word has MAC addresses. */
    LATER_WORDS(words, compared, COMPARE)
compared:
    if (KNOWN(frames->direct % 8)) {
        u64 mask = of_addresses ? frames->tail_addresses : frames->tail_mask;
        different |= (AT(u64, frame + frames->direct - 8) ^ frames->tail) & mask;
    }
    ROUNDS(i, 0, MOST_FIELDS, frames->field_count) {
        const struct field *field = &frames->fields[i];
        if (KNOWN(field->is_ignored) || (of_addresses && !KNOWN(field->is_address)))
            continue;
        different |= load(frame + field->offset, field->width) ^ values->fields[i];
    }
    return different;
}

/* Compares a frame with the one that was sent. `lost` is the number of missing bytes, if the kernel has removed the
   VLAN tag: `frame` points that far before the data, so that all places are those of the frame as it was sent. */
PART int compare(struct xdp_md *context, u8 *frame, const struct way *way, u32 lost, u32 order, u64 *flow)
{
    const struct frames *frames = &way->frames;
    struct values values;
    values.place = 0;
    if (KNOWN(frames->sizes)) {
        if (!find_size(frames, order, &values) || values.entry[0] != DATA_END(context) - frame)
            return CORRUPTED;
    }
    if (!find_values(frames, order, &values))
        return CORRUPTED;
    *flow = values.flow;
    u64 different = differences(frame, frames, &values, lost, 0);
    ROUNDS(i, 0, MOST_CHECKSUMS, frames->checksum_count) {
        if (!KNOWN(frames->checksums[i].is_ignored))
            different |= AT(u16, frame + frames->checksums[i].offset) ^ compute(frames, i, &values);
    }
    ROUNDS(i, 0, MOST_HEADERS, frames->header_count) {
        u8 *header = frame + frames->headers[i].start;
        KEEP(header);
        u64 sum = frames->headers[i].options;
        WRITTEN_OUT for (u32 word = 0; word < HEADER_WORDS; word++)
            sum += AT(u32, header + 4 * word);
        different |= complement(folded(sum));
    }
    ROUNDS(i, 0, MOST_SIZED, frames->sized_count) {
        if (!KNOWN(frames->sized[i].is_ignored))
            different |= AT(u16, frame + frames->sized[i].offset) ^ (u16)values.entry[1 + i];
    }
    if (RARELY(different))
        return differences(frame, frames, &values, lost, 1) ? READDRESSED : CORRUPTED;
    if (KNOWN(frames->longest > frames->direct) && !has_right_contents(context, frames, lost, values.place))
        return CORRUPTED;
    return INTACT;
}

/* Counts an intact frame that another node has sent, once: its entry in the ring then has its round. */
PART int note_of_elsewhere(struct counters *here, u64 *entry, u64 round)
{
    u64 before = *entry, later = (before - round) & WRAPS;
    if (RARELY(before && later && later <= WRAPS / 2)) {
        here->stale++;
        return 0;
    }
    if (RARELY((before && !later) || __sync_val_compare_and_swap(entry, before, round) != before)) {
        here->duplicated++;
        return 0;
    }
    here->intact++;
    return 1;
}

/* Counts an intact frame, once: takes its time of sending out of the ring. */
PART int take_time(struct counters *here, struct latencies *latencies, u64 *entry, u64 round, u64 now, u64 sequence)
{
    u64 time = *entry, of_entry = time & ((1 << WRAP_BITS) - 1), later = (of_entry - round) & WRAPS;
    /* No frame with this number was sent, so the number is damaged. */
    if (RARELY(of_entry == 0 || later > WRAPS / 2)) {
        here->corrupted++;
        return 0;
    }
    if (RARELY(later)) {
        here->stale++;
        return 0;
    }
    if (RARELY(!(time >> WRAP_BITS) || __sync_val_compare_and_swap(entry, time, round) != time)) {
        here->duplicated++;
        latencies->duplicated++;
        return 0;
    }
    /* The difference of two times of 48 bits. It may be negative: clocks of two processors differ by some
       nanoseconds. */
    u64 latency = ((now << WRAP_BITS) - (time - round)) >> WRAP_BITS;
    if (RARELY(latency >> (63 - WRAP_BITS)))
        latency = 0;
    here->intact++;
    count_latency(here, latencies, latency, sequence);
    return 1;
}

/* Counts a frame of a stream. `number` is the stream's number among all streams; for `lost`, see `compare`. */
PART int take(struct xdp_md *context, const struct way *way, u32 lost, u64 number)
{
    const struct frames *frames = &way->frames;
    u64 cpu = get_smp_processor_id(), flow;
    if (RARELY(cpu >= PROCESSORS || number >= ALL_STREAMS))
        return XDP_DROP;
    struct counters *here = &counters[cpu * ALL_STREAMS + number];
    KEEP(here);
    here->arrived++;
    u64 now = ktime_get_ns();
    u8 *frame = DATA(context) - lost, *end = DATA_END(context);
    KEEP(frame);
    u64 length = end - frame;
    if (KNOWN(!frames->sizes)) {
        if (RARELY(length != frames->longest))
            goto wrong_length;
    } else if (length >= LONGEST_FRAME || !(way->lengths[length / 64] >> length % 64 & 1)) {
        goto wrong_length;
    }
    if (RARELY(frame + frames->direct > end))
        goto wrong_length;
    if (KNOWN(way->mac_end != MANY) &&
        RARELY(AT(u32, frame + lost) != way->mac || AT(u16, frame + lost + 4) != way->mac_end)) {
        here->wrong_mac++;
        return XDP_DROP;
    }
    if (KNOWN(!frames->is_numbered)) {
        here->intact++;
        return XDP_DROP;
    }
    struct stream *stream = &reception.streams[number];
    u32 sequence = __builtin_bswap32(AT(u32, frame + frames->tag_offset + 4));
    if (KNOWN(frames->compensation) &&
        RARELY(AT(u16, frame + frames->compensation) != compensation(stream->tag_sum, sequence)))
        goto corrupted;
    u32 order = sequence * way->step + way->first + (number - way->number);
    int found = compare(context, frame, way, lost, order, &flow);
    if (RARELY(found == CORRUPTED))
        goto corrupted;
    if (RARELY(found == READDRESSED)) {
        here->readdressed++;
        return XDP_DROP;
    }
    u64 *entry = entry_of(number, sequence);
    u64 round = (sequence >> RING_BITS) + 1;
    struct latencies *latencies = latencies_of(way, here, cpu, flow);
    if (KNOWN(way->is_elsewhere) ? !note_of_elsewhere(here, entry, round) : !take_time(here, latencies, entry, round, now, sequence))
        return XDP_DROP;
    u64 queue = context->rx_queue_index % QUEUES;
    note_order(&stream->orders[queue], number, queue, here, latencies, sequence, now);
    return XDP_DROP;
wrong_length:
    here->wrong_length++;
    return XDP_DROP;
corrupted:
    here->corrupted++;
    return XDP_DROP;
}

/* Counts a frame to which a device has added a VLAN tag: our tag is then four bytes further on. */
PART int look_further(struct xdp_md *context, const struct way *way)
{
    u8 *tag = DATA(context) + way->frames.tag_offset + VLAN_TAG_BYTES;
    u64 cpu = get_smp_processor_id();
    if (tag + 4 > DATA_END(context) || cpu >= PROCESSORS)
        return NO_TAG;
    u32 word = __builtin_bswap32(AT(u32, tag));
    u64 number = word & STREAM_BITS;
    if ((word & ~STREAM_BITS) != reception.family || number - way->number >= way->streams || number >= ALL_STREAMS)
        return NO_TAG;
    struct counters *here = &counters[cpu * ALL_STREAMS + number];
    here->arrived++;
    here->wrong_length++;
    return XDP_DROP;
}

/* Whether a tag belongs to earlier traffic whose late frames are counted, or to its ramp. */
PART int is_earlier(u32 family)
{
    u64 latest = reception.latest;
    return !(latest >> 32) && (u32)latest - family < MOST_TRAFFIC * TAGS_OF_TRAFFIC;
}

PART int is_of_ramp(u32 family)
{
    return ((u32)reception.latest - family) % TAGS_OF_TRAFFIC != 0;
}

/* Where the late frames of traffic are counted. */
PART u32 place_of(u32 family)
{
    return family / TAGS_OF_TRAFFIC % MOST_TRAFFIC;
}

/* Looks for a tag of a way: at its place, or four bytes before it, if the kernel has removed the frame's VLAN tag. */
PART int look(struct xdp_md *context, const struct way *way)
{
    u32 lost = 0;
    WRITTEN_OUT for (u32 place = 0; place < 2; place++) {
        u8 *tag = DATA(context) + way->frames.tag_offset - lost;
        if (RARELY(tag + 4 > DATA_END(context)))
            return NO_TAG;
        u32 word = __builtin_bswap32(AT(u32, tag)), family = word & ~STREAM_BITS;
        u64 number = word & STREAM_BITS;
        if (!RARELY(family != reception.family))
            return number - way->number < way->streams ? take(context, way, lost, number) : OF_OTHERS;
        if (is_earlier(family)) {
            if (!is_of_ramp(family) && number - way->number < way->streams && number < ALL_STREAMS)
                __sync_fetch_and_add(&reception.streams[number].late[place_of(family)], 1);
            return XDP_DROP;
        }
        if (!KNOWN(way->frames.behind_vlan))
            return NO_TAG;
        lost = VLAN_TAG_BYTES;
    }
    return NO_TAG;
}

PROGRAM int receive(struct xdp_md *context)
{
    int is_of_others = 0;
    WHILE_RUNNING for (u64 i = 0; i < WAYS; i++) {
        const struct way *way = &WAY[i];
        KEEP(way);
        int found = look(context, way);
        if (found < NO_TAG)
            return found;
        is_of_others |= found == OF_OTHERS;
    }
    if (!is_of_others) {
        WHILE_RUNNING for (u64 i = 0; i < WAYS; i++) {
            int found = look_further(context, &WAY[i]);
            if (found < NO_TAG)
                return found;
        }
    }
    u64 first = WAY[0].number;
    if (first >= ALL_STREAMS)
        return XDP_PASS;
    __sync_fetch_and_add(is_of_others ? &reception.streams[first].strayed : &reception.streams[first].foreign, 1);
    return is_of_others ? XDP_DROP : XDP_PASS;
}
