// SPDX-License-Identifier: GPL-2.0
/*
 * mmu: the buffer of a switch port, as the memory management unit of a switch ASIC manages it.
 *
 * One instance a port, below the token bucket that gives the port its rate. All instances of a network namespace (one
 * switch, or one host) share a buffer. docs/lossless.md explains it; testbed/kernel/rtnetlink/mmu.py configures it and
 * reads its counters, and has the same two structures.
 *
 * - Eight classes by DSCP. Strict ones are served first, the highest before; the others by deficit round robin.
 * - A lossless class is counted where it came in (priority group of the ingress port). What exceeds the threshold goes
 *   into headroom and sends a PFC frame (IEEE 802.1Qbb) out of that port; a full headroom drops. Thresholds are static,
 *   dynamic (alpha times the free buffer), or the lower of both.
 * - A lossy class is counted where it leaves (egress queue). What exceeds the threshold is dropped, or trimmed to its
 *   headers and queued in the class for trimmed packets.
 * - ECN: marked by the length of the egress queue, as RED on the instantaneous queue.
 * - PFC frames received stop their class at this port, after the reaction time. A watchdog ends a stop that lasts.
 * - In-band telemetry (INT): a switch's port writes queue, bytes sent, time and rate into packets that ask for it.
 * - Balancing: a switch may choose among the next hops of a route by itself, for each packet or each flowlet.
 *
 * The token bucket takes a packet out before it has the tokens to send it. That packet has left the buffer, and a pause
 * does not stop it, as a MAC finishes the frame that it sends.
 */
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/jhash.h>
#include <linux/module.h>
#include <linux/netfilter_ipv4.h>
#include <linux/udp.h>
#include <linux/version.h>
#include <linux/xarray.h>
#include <net/dsfield.h>
#include <net/inet_ecn.h>
#include <net/ip.h>
#include <net/ip_fib.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/nexthop.h>
#include <net/pkt_sched.h>

#define CLASSES 8
#define CONTROL 7		/* of frames that are not IP: LACP, ARP, path control */
#define PFC_OPCODE 0x0101
#define ROCE_PORT 4791
#define BTH_CNP 0x81
#define BTH_INT 0xc0		/* of those that IBTA leaves to manufacturers: asks for telemetry */
#define INT_AT 24		/* in the UDP payload, after BTH (12), send time (8) and ICRC (4) */
#define FLOWLETS 1024		/* entries of a switch's table; flows may share one, as in ASICs */
#define QUANTA_MAX 0xffff
#define PENDING 8		/* PFC frames of a class that wait for the reaction time */

enum class_flags { LOSSLESS = 1, TRIM = 2, WATCHDOG = 4, WATCHDOG_FORWARDS = 8 };
enum balance_by { BY_ECMP, BY_HASH, BY_RANDOM, BY_QUEUE };

/* TCA_OPTIONS. Bytes are those of frames from the Ethernet header on. */
struct mmu_class {
	__u32 flags;
	__u32 quantum;		/* bytes a round; 0: strict */
	__u32 limit;		/* static threshold, bytes; 0: none */
	__u32 alpha;		/* dynamic threshold: share of the free buffer, in 1/1024; 0: none */
	__u32 xon_offset;	/* XON so many bytes below the threshold */
	__u32 headroom;		/* bytes, of each ingress port */
	__u32 kmin, kmax;	/* bytes; kmax 0: no ECN */
	__u32 pmax;		/* share marked just below kmax, in 2^-32 */
};

struct mmu_options {
	__u32 buffer;		/* bytes that all ports share, headroom apart */
	__u32 quantum_ns;	/* 512 bit times of this port */
	__u32 react_ns;		/* from the arrival of a PFC frame to its effect: both ways of the cable, and the MAC's time */
	__u32 detect_us;	/* watchdog: stopped so long with packets waiting is a storm */
	__u32 restore_us;	/* watchdog: so long without a PFC frame ends it */
	__u32 trim_bytes;	/* IP packet that trimming leaves */
	__u32 rate_kbps;	/* of this port */
	__u32 gap_us;		/* a flow that was idle so long may take another next hop; 0: each packet may */
	__u32 seed;		/* of the switch, for the hash of flows */
	__u16 stuck_quanta, stuck_every;	/* fault: length of a pause, and quanta from one to the next */
	__u8 trim_class, trim_dscp;
	__u8 is_switch, rdma_dscp, cnp_dscp;	/* hosts mark RoCEv2 that has DSCP 0 */
	__u8 stuck;		/* fault: bit mask of classes whose neighbour this port stops */
	__u8 balance;		/* enum balance_by */
	__u8 pad;
	__u8 class_of[64];	/* by DSCP */
	struct mmu_class classes[CLASSES];
};

/* TCA_STATS_APP, one for each class. Counted since the port was made; times in ns. */
struct mmu_counters {
	__u64 queue, queue_max;			/* egress: bytes now, most */
	__u64 held, held_max;			/* ingress: bytes in the buffer now, most (headroom apart) */
	__u64 headroom, headroom_max;		/* ingress: bytes in headroom now, most */
	__u64 sent_packets, sent_bytes;
	__u64 drops;				/* packets: no room in the egress queue or the buffer */
	__u64 headroom_drops;			/* packets: ingress port's headroom was full */
	__u64 trims, marks;			/* packets */
	__u64 rx_xoff, rx_xon, tx_xoff, tx_xon;	/* PFC frames, refreshes included */
	__u64 paused_ns;			/* this port was stopped */
	__u64 pausing_ns;			/* it stopped its neighbour */
	__u64 storms, restored, storm_drops;	/* watchdog; packets */
	__u64 paused, pausing, storming;	/* now: 0 or 1 */
};

struct mmu_pfc { u64 at; u16 quanta; };

struct mmu_queue {
	struct qdisc_skb_head packets;
	s32 deficit;
	bool has_turn;
	/* PFC received */
	struct mmu_pfc pending[PENDING];
	int pending_first, pending_count;
	u64 paused_from, paused_until;		/* until 0: not paused */
	u64 heard_at, stuck_since;		/* watchdog */
	bool storming;
	/* PFC sent */
	bool pausing;
	u64 pausing_from, refresh_at;
	struct mmu_counters count;
};

struct mmu_port {
	struct mmu_options conf;
	struct mmu_queue queues[CLASSES];
	int turn;				/* class that deficit round robin serves */
	struct qdisc_watchdog timer;
};

struct mmu_flowlet { u64 seen; int port; };

struct mmu {					/* of a network namespace */
	struct xarray ports;			/* ifindex to Qdisc */
	spinlock_t lock;			/* of everything in it, as ports count for each other */
	u64 used;				/* bytes of the shared buffer */
	u8 balance;
	u32 seed;
	u64 gap_ns;
	struct mmu_flowlet *flowlets;		/* NULL until this switch balances */
};

struct mmu_cb { int iif; u8 class; bool in_headroom, is_held; };

struct int_hop { __be64 time_ns, sent_bytes; __be32 queue, rate_kbps; } __packed;

struct pfc_frame {
	struct ethhdr eth;
	__be16 opcode, enable, quanta[CLASSES];
	u8 pad[60 - ETH_HLEN - 4 - 2 * CLASSES];
} __packed;

static unsigned int mmu_id;

static struct mmu_cb *cb(struct sk_buff *skb)
{
	return (struct mmu_cb *)qdisc_skb_cb(skb)->data;
}

static struct mmu *mmu_of(const struct Qdisc *sch)
{
	return net_generic(dev_net(qdisc_dev(sch)), mmu_id);
}

static struct Qdisc *port_by_index(struct mmu *mmu, int ifindex)
{
	return ifindex ? xa_load(&mmu->ports, ifindex) : NULL;
}

/* ---- Classes and thresholds */

static int dscp_of(struct sk_buff *skb)
{
	int at = skb_network_offset(skb);

	if (skb->protocol == htons(ETH_P_IP) && pskb_may_pull(skb, at + sizeof(struct iphdr)))
		return ipv4_get_dsfield(ip_hdr(skb)) >> 2;
	if (skb->protocol == htons(ETH_P_IPV6) && pskb_may_pull(skb, at + sizeof(struct ipv6hdr)))
		return ipv6_get_dsfield(ipv6_hdr(skb)) >> 2;
	return -1;
}

static u8 class_of(const struct mmu_options *conf, struct sk_buff *skb)
{
	int dscp = dscp_of(skb);

	return dscp < 0 ? CONTROL : conf->class_of[dscp] % CLASSES;
}

static u64 threshold(const struct mmu *mmu, const struct mmu_options *conf, const struct mmu_class *class)
{
	u64 unused = conf->buffer > mmu->used ? conf->buffer - mmu->used : 0;
	u64 dynamic = class->alpha ? unused * class->alpha >> 10 : U64_MAX;

	return min(dynamic, class->limit ? class->limit : U64_MAX);
}

static bool marks(const struct mmu_class *class, u64 queue)
{
	if (!class->kmax || queue < class->kmin)
		return false;
	return queue >= class->kmax ||
	       get_random_u32() < div_u64((u64)class->pmax * (queue - class->kmin), class->kmax - class->kmin);
}

/* ---- PFC frames that a port sends */

static void send_pfc(struct net_device *dev, int class, u16 quanta)
{
	struct sk_buff *skb = alloc_skb(LL_RESERVED_SPACE(dev) + sizeof(struct pfc_frame), GFP_ATOMIC);
	static const u8 to_mac_control[ETH_ALEN] = { 0x01, 0x80, 0xc2, 0x00, 0x00, 0x01 };
	struct pfc_frame *frame;

	if (!skb)
		return;
	skb_reserve(skb, LL_RESERVED_SPACE(dev));
	skb_reset_mac_header(skb);
	frame = skb_put_zero(skb, sizeof(*frame));
	ether_addr_copy(frame->eth.h_dest, to_mac_control);
	ether_addr_copy(frame->eth.h_source, dev->dev_addr);
	frame->eth.h_proto = htons(ETH_P_PAUSE);
	frame->opcode = htons(PFC_OPCODE);
	frame->enable = htons(BIT(class));
	frame->quanta[class] = htons(quanta);
	skb_set_network_header(skb, ETH_HLEN);
	skb->dev = dev;
	skb->protocol = htons(ETH_P_PAUSE);
	dev_direct_xmit(skb, 0);	/* past the queues, as a MAC sends its control frames */
}

static void wake_at(struct mmu_port *port, u64 at)
{
	struct hrtimer *timer = &port->timer.timer;

	if (!hrtimer_is_queued(timer) || ktime_to_ns(hrtimer_get_softexpires(timer)) > at)
		qdisc_watchdog_schedule_ns(&port->timer, at);
}

static void start_pausing(struct Qdisc *in, int class, u64 now)
{
	struct mmu_port *port = qdisc_priv(in);
	struct mmu_queue *q = &port->queues[class];
	bool stuck = port->conf.stuck & BIT(class);

	if (q->pausing && now < q->refresh_at)
		return;
	if (!q->pausing)
		q->pausing_from = now;
	q->pausing = true;
	q->refresh_at = now + (u64)(stuck ? port->conf.stuck_every : QUANTA_MAX / 2) * port->conf.quantum_ns;
	q->count.tx_xoff++;
	send_pfc(qdisc_dev(in), class, stuck ? port->conf.stuck_quanta : QUANTA_MAX);
	wake_at(port, q->refresh_at);
}

static void stop_pausing(struct Qdisc *in, int class, u64 now)
{
	struct mmu_port *port = qdisc_priv(in);
	struct mmu_queue *q = &port->queues[class];

	q->pausing = false;
	q->count.pausing_ns += now - q->pausing_from;
	q->count.tx_xon++;
	send_pfc(qdisc_dev(in), class, 0);
}

/* Send XON when the priority group has drained. */
static void check_xon(struct mmu *mmu, struct Qdisc *in, int class, u64 now)
{
	struct mmu_port *port = qdisc_priv(in);
	struct mmu_queue *q = &port->queues[class];
	const struct mmu_class *c = &port->conf.classes[class];

	if (q->pausing && !(port->conf.stuck & BIT(class)) && !q->count.headroom &&
	    q->count.held + c->xon_offset <= threshold(mmu, &port->conf, c))
		stop_pausing(in, class, now);
}

/* ---- The buffer */

/* Count a packet of a lossless class where it came in; false: headroom is full. */
static bool take_ingress(struct mmu *mmu, struct Qdisc *in, struct sk_buff *skb, u64 now)
{
	u32 len = qdisc_pkt_len(skb);
	int class = cb(skb)->class;
	struct mmu_port *port = qdisc_priv(in);
	struct mmu_queue *q = &port->queues[class];
	const struct mmu_class *c = &port->conf.classes[class];

	if (q->count.held + len <= threshold(mmu, &port->conf, c) && mmu->used + len <= port->conf.buffer) {
		q->count.held += len;
		q->count.held_max = max(q->count.held_max, q->count.held);
		mmu->used += len;
	} else if (q->count.headroom + len <= c->headroom) {
		cb(skb)->in_headroom = true;
		q->count.headroom += len;
		q->count.headroom_max = max(q->count.headroom_max, q->count.headroom);
		start_pausing(in, class, now);
	} else {
		q->count.headroom_drops++;
		start_pausing(in, class, now);
		return false;
	}
	cb(skb)->is_held = true;
	return true;
}

/* Free what a packet occupies. */
static void release(struct mmu *mmu, struct sk_buff *skb, u64 now)
{
	struct Qdisc *in = cb(skb)->is_held ? port_by_index(mmu, cb(skb)->iif) : NULL;
	u32 len = qdisc_pkt_len(skb);
	struct mmu_queue *q;

	if (!cb(skb)->in_headroom)
		mmu->used -= len;
	if (!in)
		return;
	q = &((struct mmu_port *)qdisc_priv(in))->queues[cb(skb)->class];
	if (cb(skb)->in_headroom)
		q->count.headroom -= len;
	else
		q->count.held -= len;
	check_xon(mmu, in, cb(skb)->class, now);
}

/* ---- PFC frames that a port received */

static void end_pause(struct mmu_queue *q, u64 at)
{
	if (q->paused_until)
		q->count.paused_ns += min(at, q->paused_until) - q->paused_from;
	q->paused_until = 0;
	q->stuck_since = 0;
}

static void apply_pfc(const struct mmu_port *port, struct mmu_queue *q, const struct mmu_pfc *pfc)
{
	if (!pfc->quanta) {
		end_pause(q, pfc->at);
		return;
	}
	if (q->paused_until && q->paused_until < pfc->at)
		end_pause(q, pfc->at);
	if (!q->paused_until)
		q->paused_from = pfc->at;
	q->paused_until = pfc->at + (u64)pfc->quanta * port->conf.quantum_ns;
	q->heard_at = pfc->at;
}

static void watch(const struct mmu_port *port, struct mmu_queue *q, const struct mmu_class *class, u64 now)
{
	if (!(class->flags & WATCHDOG))
		return;
	if (q->storming && now >= q->heard_at + port->conf.restore_us * 1000ULL) {
		q->storming = false;
		q->count.restored++;
	}
	if (q->storming)
		return;
	if (!q->paused_until || !q->packets.qlen)
		q->stuck_since = 0;
	else if (!q->stuck_since)
		q->stuck_since = now;
	else if (now >= q->stuck_since + port->conf.detect_us * 1000ULL) {
		q->storming = true;
		q->count.storms++;
	}
}

/* Apply all that was due, and return the next time that something is (0: nothing). */
static u64 catch_up(struct Qdisc *sch, u64 now)
{
	struct mmu_port *port = qdisc_priv(sch);
	u64 next = U64_MAX;
	int class;

	for (class = 0; class < CLASSES; class++) {
		struct mmu_queue *q = &port->queues[class];
		const struct mmu_class *c = &port->conf.classes[class];

		if (!(c->flags & LOSSLESS))
			continue;
		while (q->pending_count && q->pending[q->pending_first].at <= now) {
			apply_pfc(port, q, &q->pending[q->pending_first]);
			q->pending_first = (q->pending_first + 1) % PENDING;
			q->pending_count--;
		}
		if (q->paused_until && q->paused_until <= now)
			end_pause(q, now);
		watch(port, q, c, now);
		if (port->conf.stuck & BIT(class) || (q->pausing && now >= q->refresh_at))
			start_pausing(sch, class, now);
		if (q->pending_count)
			next = min(next, q->pending[q->pending_first].at);
		if (q->paused_until)
			next = min(next, q->paused_until);
		if (q->pausing)
			next = min(next, q->refresh_at);
		if (q->storming)
			next = min(next, q->heard_at + port->conf.restore_us * 1000ULL);
		else if (q->stuck_since && c->flags & WATCHDOG)
			next = min(next, q->stuck_since + port->conf.detect_us * 1000ULL);
	}
	return next == U64_MAX ? 0 : next;
}

static void receive_pfc(struct Qdisc *sch, const struct pfc_frame *frame, u64 now)
{
	struct mmu_port *port = qdisc_priv(sch);
	int class;

	for (class = 0; class < CLASSES; class++) {
		struct mmu_queue *q = &port->queues[class];
		struct mmu_pfc pfc = { now + port->conf.react_ns, ntohs(frame->quanta[class]) };

		if (!(ntohs(frame->enable) & BIT(class)))
			continue;
		q->count.rx_xoff += !!pfc.quanta;
		q->count.rx_xon += !pfc.quanta;
		if (q->pending_count == PENDING) {	/* more within the reaction time: the last one counts */
			q->pending[(q->pending_first + PENDING - 1) % PENDING] = pfc;
			continue;
		}
		q->pending[(q->pending_first + q->pending_count) % PENDING] = pfc;
		q->pending_count++;
	}
}

static int pfc_received(struct sk_buff *skb, struct net_device *dev, struct packet_type *type, struct net_device *orig)
{
	struct mmu *mmu = net_generic(dev_net(orig), mmu_id);
	struct Qdisc *sch = port_by_index(mmu, orig->ifindex);	/* of a bond: its member */
	struct pfc_frame *frame;

	if (sch && pskb_may_pull(skb, sizeof(*frame) - ETH_HLEN)) {
		frame = (struct pfc_frame *)skb_mac_header(skb);
		if (frame->opcode == htons(PFC_OPCODE)) {
			u64 now = ktime_get_ns();
			u64 next;

			spin_lock_bh(&mmu->lock);
			receive_pfc(sch, frame, now);
			next = catch_up(sch, now);
			if (next)
				wake_at(qdisc_priv(sch), next);
			spin_unlock_bh(&mmu->lock);
			__netif_schedule(qdisc_root_sleeping(sch));
		}
	}
	kfree_skb(skb);
	return NET_RX_SUCCESS;
}

static struct packet_type pfc_type = { .type = htons(ETH_P_PAUSE), .func = pfc_received };

/* ---- Enqueue */

/*
 * Offset of a packet's own IP header, to read: the only one, or that inside an SRv6 carrier (IPv6 in IPv6; RFC 8986,
 * section 5.2). -1: it has none.
 */
static int own_ip(struct sk_buff *skb)
{
	int at = skb_network_offset(skb);

	if (skb->protocol == htons(ETH_P_IP))
		return pskb_may_pull(skb, at + sizeof(struct iphdr)) ? at : -1;
	if (skb->protocol != htons(ETH_P_IPV6) || !pskb_may_pull(skb, at + sizeof(struct ipv6hdr)))
		return -1;
	if (ipv6_hdr(skb)->nexthdr != IPPROTO_IPV6)
		return at;
	at += sizeof(struct ipv6hdr);
	return pskb_may_pull(skb, at + sizeof(struct ipv6hdr)) ? at : -1;
}

static struct iphdr *ipv4_at(const struct sk_buff *skb, int offset)
{
	return (struct iphdr *)(skb->data + offset);
}

static struct ipv6hdr *ipv6_at(const struct sk_buff *skb, int offset)
{
	return (struct ipv6hdr *)(skb->data + offset);
}

static bool is_carried(const struct sk_buff *skb, int own)
{
	return own > skb_network_offset(skb);
}

/* Write the DSCP of a packet and of its carrier. */
static void set_dscp(struct sk_buff *skb, int own, u8 dscp)
{
	if (skb->protocol == htons(ETH_P_IP)) {
		ipv4_change_dsfield(ipv4_at(skb, own), INET_ECN_MASK, dscp << 2);
		return;
	}
	ipv6_change_dsfield(ipv6_at(skb, own), INET_ECN_MASK, dscp << 2);
	ipv6_change_dsfield(ipv6_hdr(skb), INET_ECN_MASK, dscp << 2);
}

/*
 * Mark congestion. RFC 6040 lets the end of a tunnel copy the outer mark to the inner header. Linux ends SRv6 without,
 * so a switch marks both.
 */
static bool set_ce(struct sk_buff *skb)
{
	int own = own_ip(skb);

	if (own >= 0 && is_carried(skb, own) && !skb_ensure_writable(skb, own + sizeof(struct ipv6hdr)))
		IP6_ECN_set_ce(skb, ipv6_at(skb, own));
	return INET_ECN_set_ce(skb);
}

/* Offset of a packet's UDP header, to read; -1 if it has none. */
static int udp_offset(struct sk_buff *skb)
{
	int own = own_ip(skb), at = own;

	if (own < 0)
		return -1;
	if (skb->protocol == htons(ETH_P_IP)) {
		if (ipv4_at(skb, own)->protocol != IPPROTO_UDP || ip_is_fragment(ipv4_at(skb, own)))
			return -1;
		at += ipv4_at(skb, own)->ihl * 4;
	} else {
		if (ipv6_at(skb, own)->nexthdr != IPPROTO_UDP)
			return -1;
		at += sizeof(struct ipv6hdr);
	}
	return pskb_may_pull(skb, at + sizeof(struct udphdr)) ? at : -1;
}

/* Offset of a RoCEv2 packet's BTH, of which so many bytes and what follows are there to read; -1 if it is none. */
static int rdma_offset(struct sk_buff *skb, int bytes)
{
	int udp = udp_offset(skb), at = udp + sizeof(struct udphdr);

	if (udp < 0 || !pskb_may_pull(skb, at + bytes) ||
	    ((struct udphdr *)(skb->data + udp))->dest != htons(ROCE_PORT))
		return -1;
	return at;
}

/* A host's NIC marks RDMA (RoCEv2: UDP to port 4791) that its sender left unmarked, and congestion notifications. */
static void mark_rdma(struct sk_buff *skb, const struct mmu_options *conf)
{
	int at = conf->rdma_dscp && !dscp_of(skb) ? rdma_offset(skb, 1) : -1;
	u8 dscp = at >= 0 && skb->data[at] == BTH_CNP ? conf->cnp_dscp : conf->rdma_dscp;

	if (at >= 0 && !skb_ensure_writable(skb, at))
		set_dscp(skb, own_ip(skb), dscp);
}

/* Cut a packet of UDP. The lengths follow and UDP's checksum goes, so that the receiver's stack accepts it. */
static bool trim(struct sk_buff *skb, const struct mmu_options *conf)
{
	int own = own_ip(skb), at = udp_offset(skb), keep = own + conf->trim_bytes;
	struct udphdr *udp;

	if (at < 0 || skb->len <= keep || keep < at + (int)sizeof(*udp) || skb_ensure_writable(skb, keep) ||
	    pskb_trim(skb, keep))
		return false;
	skb->ip_summed = CHECKSUM_NONE;
	udp = (struct udphdr *)(skb->data + at);
	udp->len = htons(keep - at);
	udp->check = 0;
	if (skb->protocol == htons(ETH_P_IP)) {
		csum_replace2(&ipv4_at(skb, own)->check, ipv4_at(skb, own)->tot_len, htons(conf->trim_bytes));
		ipv4_at(skb, own)->tot_len = htons(conf->trim_bytes);
	} else {
		ipv6_hdr(skb)->payload_len = htons(conf->trim_bytes);
		ipv6_at(skb, own)->payload_len = htons(keep - at);
	}
	set_dscp(skb, own, conf->trim_dscp);
	qdisc_skb_cb(skb)->pkt_len = skb->len;
	return true;
}

static bool fits(const struct mmu *mmu, const struct mmu_port *port, int class, u32 len)
{
	const struct mmu_class *c = &port->conf.classes[class];

	return port->queues[class].count.queue + len <= threshold(mmu, &port->conf, c) &&
	       mmu->used + len <= port->conf.buffer;
}

/* Count a packet in the buffer. false: there is no room, and it was not trimmed. */
static bool admit(struct mmu *mmu, struct mmu_port *port, struct sk_buff *skb, u64 now)
{
	struct mmu_cb *own = cb(skb);
	const struct mmu_class *c = &port->conf.classes[own->class];
	struct Qdisc *in = port->conf.is_switch ? port_by_index(mmu, own->iif) : NULL;

	if (c->flags & LOSSLESS && in)
		return take_ingress(mmu, in, skb, now);
	if (!fits(mmu, port, own->class, qdisc_pkt_len(skb))) {
		if (!(c->flags & TRIM) || !trim(skb, &port->conf))
			goto drop;
		port->queues[own->class].count.trims++;
		own->class = port->conf.trim_class;
		if (!fits(mmu, port, own->class, qdisc_pkt_len(skb)))
			goto drop;
	}
	mmu->used += qdisc_pkt_len(skb);
	return true;
drop:
	port->queues[own->class].count.drops++;
	return false;
}

static int mmu_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct mmu_port *port = qdisc_priv(sch);
	struct mmu *mmu = mmu_of(sch);
	u32 arrived = qdisc_pkt_len(skb);
	u64 now = ktime_get_ns();
	struct mmu_queue *q;

	if (!port->conf.is_switch)
		mark_rdma(skb, &port->conf);
	*cb(skb) = (struct mmu_cb){ .iif = skb->skb_iif, .class = class_of(&port->conf, skb) };
	spin_lock_bh(&mmu->lock);
	q = &port->queues[cb(skb)->class];
	if (q->storming && !(port->conf.classes[cb(skb)->class].flags & WATCHDOG_FORWARDS)) {
		q->count.storm_drops++;
		goto drop;
	}
	if (!admit(mmu, port, skb, now))
		goto drop;
	q = &port->queues[cb(skb)->class];
	if (marks(&port->conf.classes[cb(skb)->class], q->count.queue) && set_ce(skb))
		q->count.marks++;
	__qdisc_enqueue_tail(skb, &q->packets);
	q->count.queue += qdisc_pkt_len(skb);
	q->count.queue_max = max(q->count.queue_max, q->count.queue);
	qdisc_qstats_backlog_inc(sch, skb);
	sch->q.qlen++;
	if (qdisc_pkt_len(skb) < arrived)	/* trimmed */
		qdisc_tree_reduce_backlog(sch, 0, arrived - qdisc_pkt_len(skb));
	spin_unlock_bh(&mmu->lock);
	return NET_XMIT_SUCCESS;
drop:
	spin_unlock_bh(&mmu->lock);
	return qdisc_drop(skb, sch, to_free);
}

/* ---- In-band telemetry */

static void tell(struct sk_buff *skb, struct mmu_port *port, u64 now)
{
	int begin = rdma_offset(skb, INT_AT + 4), class, at;
	u8 *bth = skb->data + begin;
	struct int_hop *hop;
	u64 sent = 0, queue = 0;

	if (begin < 0 || *bth != BTH_INT || bth[INT_AT] >= bth[INT_AT + 1])
		return;
	at = INT_AT + 4 + bth[INT_AT] * sizeof(*hop);
	if (skb_ensure_writable(skb, begin + at + sizeof(*hop)))
		return;
	bth = skb->data + begin;
	for (class = 0; class < CLASSES; class++) {
		sent += port->queues[class].count.sent_bytes;
		queue += port->queues[class].count.queue;
	}
	hop = (struct int_hop *)(bth + at);
	hop->time_ns = cpu_to_be64(now);
	hop->sent_bytes = cpu_to_be64(sent);
	hop->queue = htonl(min_t(u64, queue, U32_MAX));
	hop->rate_kbps = htonl(port->conf.rate_kbps);
	bth[INT_AT]++;
}

/* ---- Balancing: the hash decides which next hop the kernel takes (fib_multipath_hash_policy 1), so set it */

static u64 queue_of(struct mmu *mmu, int ifindex)
{
	struct Qdisc *sch = port_by_index(mmu, ifindex);
	u64 queue = 0;
	int class;

	for (class = 0; sch && class < CLASSES; class++)
		queue += ((struct mmu_port *)qdisc_priv(sch))->queues[class].count.queue;
	return queue;
}

static bool is_usable(struct fib_info *fi, int i)
{
	return atomic_read(&fib_info_nh(fi, i)->fib_nh_upper_bound) >= 0;
}

/* The usable next hop number ``nth`` (from 0); there are more than that. */
static int usable(struct fib_info *fi, int nth)
{
	int i = -1;

	do
		i++;
	while (!is_usable(fi, i) || nth--);
	return i;
}

/* The next hop with the shortest queue; the search begins anywhere, so that equal ones take turns. */
static int shortest(struct mmu *mmu, struct fib_info *fi, int count)
{
	int k, best = 0, first = get_random_u32_below(count);
	u64 least = U64_MAX;

	for (k = 0; k < count; k++) {
		int i = usable(fi, (first + k) % count);
		u64 queue = queue_of(mmu, fib_info_nh(fi, i)->fib_nh_oif);

		if (queue < least) {
			least = queue;
			best = i;
		}
	}
	return best;
}

static int choose(struct mmu *mmu, struct fib_info *fi, u32 hash, u64 now)
{
	struct mmu_flowlet *flowlet = &mmu->flowlets[hash % FLOWLETS];
	int i, count = 0, last = -1;

	for (i = 0; i < fib_info_num_path(fi); i++) {
		if (!is_usable(fi, i))
			continue;
		count++;
		if (fib_info_nh(fi, i)->fib_nh_oif == flowlet->port)
			last = i;
	}
	if (!count)
		return -1;
	if (last < 0 || now >= flowlet->seen + mmu->gap_ns) {
		last = mmu->balance == BY_QUEUE ? shortest(mmu, fi, count) :
		       usable(fi, mmu->balance == BY_RANDOM ? get_random_u32_below(count) : (hash >> 10) % count);
		flowlet->port = fib_info_nh(fi, last)->fib_nh_oif;
	}
	flowlet->seen = now;
	return last;
}

static u32 flow_hash(const struct mmu *mmu, struct sk_buff *skb)
{
	const struct iphdr *ip = ip_hdr(skb);
	__be32 ports = 0;

	if ((ip->protocol == IPPROTO_UDP || ip->protocol == IPPROTO_TCP) && !ip_is_fragment(ip))
		skb_copy_bits(skb, skb_network_offset(skb) + ip->ihl * 4, &ports, sizeof(ports));
	return jhash_3words((__force u32)ip->saddr, (__force u32)ip->daddr, (__force u32)ports, mmu->seed);
}

static unsigned int balance(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	struct mmu *mmu = net_generic(state->net, mmu_id);
	struct flowi4 key = {
		.saddr = ip_hdr(skb)->saddr, .daddr = ip_hdr(skb)->daddr, .flowi4_iif = skb->dev->ifindex,
		.flowi4_scope = RT_SCOPE_UNIVERSE,
	};
	struct fib_result found;
	int next;

	if (!mmu->balance || fib_lookup(state->net, &key, &found, 0) || found.type != RTN_UNICAST || found.fi->nh ||
	    fib_info_num_path(found.fi) < 2)
		return NF_ACCEPT;
	spin_lock_bh(&mmu->lock);
	next = choose(mmu, found.fi, flow_hash(mmu, skb), ktime_get_ns());
	spin_unlock_bh(&mmu->lock);
	if (next >= 0)
		__skb_set_sw_hash(skb, atomic_read(&fib_info_nh(found.fi, next)->fib_nh_upper_bound) << 1, true);
	return NF_ACCEPT;
}

static const struct nf_hook_ops balance_hook = {
	.hook = balance, .pf = NFPROTO_IPV4, .hooknum = NF_INET_PRE_ROUTING, .priority = NF_IP_PRI_LAST,
};

/* Balance in this namespace as its ports' options say, from the first one that asks for it on. */
static int set_balance(struct net *net, const struct mmu_options *conf)
{
	struct mmu *mmu = net_generic(net, mmu_id);
	struct mmu_flowlet *flowlets;
	int err;

	if (conf->balance && !mmu->flowlets) {
		flowlets = kcalloc(FLOWLETS, sizeof(*flowlets), GFP_KERNEL);
		if (!flowlets)
			return -ENOMEM;
		mmu->flowlets = flowlets;
		err = nf_register_net_hook(net, &balance_hook);
		if (err) {
			mmu->flowlets = NULL;
			kfree(flowlets);
			return err;
		}
	}
	mmu->seed = conf->seed;
	mmu->gap_ns = conf->gap_us * 1000ULL;
	mmu->balance = conf->balance;
	return 0;
}

/* ---- Dequeue */

static struct sk_buff *take(struct Qdisc *sch, int class, u64 now)
{
	struct mmu_port *port = qdisc_priv(sch);
	struct mmu_queue *q = &port->queues[class];
	struct sk_buff *skb = __qdisc_dequeue_head(&q->packets);

	q->count.queue -= qdisc_pkt_len(skb);
	qdisc_qstats_backlog_dec(sch, skb);
	sch->q.qlen--;
	release(mmu_of(sch), skb, now);
	return skb;
}

static void drop_all(struct Qdisc *sch, int class, u64 now)
{
	struct mmu_queue *q = &((struct mmu_port *)qdisc_priv(sch))->queues[class];

	while (q->packets.qlen) {
		struct sk_buff *skb = take(sch, class, now);

		q->count.storm_drops++;
		qdisc_tree_reduce_backlog(sch, 1, qdisc_pkt_len(skb));	/* the token bucket above counts too */
		qdisc_qstats_drop(sch);
		kfree_skb(skb);
	}
}

static bool may_send(const struct mmu_queue *q)
{
	return q->packets.qlen && (!q->paused_until || q->storming);
}

static int next_in_round(struct mmu_port *port)
{
	bool someone = false;
	int i;

	for (i = 0; i < CLASSES; i++)
		someone |= port->conf.classes[i].quantum && may_send(&port->queues[i]);
	while (someone) {
		struct mmu_queue *q = &port->queues[port->turn];
		u32 quantum = port->conf.classes[port->turn].quantum;

		if (quantum && may_send(q)) {
			if (!q->has_turn)
				q->deficit += quantum;
			q->has_turn = true;
			if (q->deficit >= (s32)qdisc_pkt_len(q->packets.head)) {
				q->deficit -= qdisc_pkt_len(q->packets.head);
				return port->turn;
			}
		} else {
			q->deficit = 0;
		}
		q->has_turn = false;
		port->turn = (port->turn + 1) % CLASSES;
	}
	return -1;
}

static int next_class(struct mmu_port *port)
{
	int class;

	for (class = CLASSES - 1; class >= 0; class--)
		if (!port->conf.classes[class].quantum && may_send(&port->queues[class]))
			return class;
	return next_in_round(port);
}

static struct sk_buff *mmu_dequeue(struct Qdisc *sch)
{
	struct mmu_port *port = qdisc_priv(sch);
	struct mmu *mmu = mmu_of(sch);
	struct sk_buff *skb = NULL;
	u64 now = ktime_get_ns();
	u64 next;
	int class;

	spin_lock_bh(&mmu->lock);
	next = catch_up(sch, now);
	for (class = 0; class < CLASSES; class++)
		if (port->queues[class].storming && !(port->conf.classes[class].flags & WATCHDOG_FORWARDS))
			drop_all(sch, class, now);
	class = next_class(port);
	if (class >= 0) {
		skb = take(sch, class, now);
		qdisc_bstats_update(sch, skb);
		port->queues[class].count.sent_packets++;
		port->queues[class].count.sent_bytes += qdisc_pkt_len(skb);
		if (port->conf.is_switch)
			tell(skb, port, now);
	}
	spin_unlock_bh(&mmu->lock);
	if (next)
		wake_at(port, next);
	return skb;
}

/* ---- Configuration and counters */

static int mmu_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct mmu_port *port = qdisc_priv(sch);
	struct mmu *mmu = mmu_of(sch);
	int class, err;
	u64 next;

	if (!opt || nla_len(opt) != sizeof(struct mmu_options)) {
		NL_SET_ERR_MSG(extack, "mmu: options of another size");
		return -EINVAL;
	}
	err = set_balance(dev_net(qdisc_dev(sch)), nla_data(opt));
	if (err)
		return err;
	spin_lock_bh(&mmu->lock);
	memcpy(&port->conf, nla_data(opt), sizeof(port->conf));
	for (class = 0; class < CLASSES; class++)
		check_xon(mmu, sch, class, ktime_get_ns());
	next = catch_up(sch, ktime_get_ns());
	spin_unlock_bh(&mmu->lock);
	if (next)
		wake_at(port, next);
	return 0;
}

static int mmu_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct mmu_port *port = qdisc_priv(sch);
	int err;

	qdisc_watchdog_init(&port->timer, sch);
	err = mmu_change(sch, opt, extack);
	return err ?: xa_err(xa_store(&mmu_of(sch)->ports, qdisc_dev(sch)->ifindex, sch, GFP_KERNEL));
}

static void mmu_reset(struct Qdisc *sch)
{
	struct mmu_port *port = qdisc_priv(sch);
	struct mmu *mmu = mmu_of(sch);
	u64 now = ktime_get_ns();
	int class;

	spin_lock_bh(&mmu->lock);
	for (class = 0; class < CLASSES; class++) {
		struct mmu_queue *q = &port->queues[class];

		while (q->packets.qlen)
			kfree_skb(take(sch, class, now));
		end_pause(q, now);
		q->pending_count = 0;
		q->deficit = 0;
		q->storming = false;
		if (q->pausing)
			q->count.pausing_ns += now - q->pausing_from;
		q->pausing = false;
	}
	spin_unlock_bh(&mmu->lock);
	qdisc_watchdog_cancel(&port->timer);
}

static void mmu_destroy(struct Qdisc *sch)
{
	struct mmu_port *port = qdisc_priv(sch);

	xa_cmpxchg(&mmu_of(sch)->ports, qdisc_dev(sch)->ifindex, sch, NULL, GFP_KERNEL);
	qdisc_watchdog_cancel(&port->timer);
}

static int mmu_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct mmu_port *port = qdisc_priv(sch);

	return nla_put(skb, TCA_OPTIONS, sizeof(port->conf), &port->conf) ? -EMSGSIZE : skb->len;
}

static int mmu_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct mmu_port *port = qdisc_priv(sch);
	struct mmu *mmu = mmu_of(sch);
	struct mmu_counters *all = kcalloc(CLASSES, sizeof(*all), GFP_ATOMIC);
	u64 now = ktime_get_ns();
	int class, err;

	if (!all)
		return -ENOMEM;
	spin_lock_bh(&mmu->lock);
	for (class = 0; class < CLASSES; class++) {
		const struct mmu_queue *q = &port->queues[class];

		all[class] = q->count;
		all[class].paused = q->paused_until > now;
		all[class].pausing = q->pausing;
		all[class].storming = q->storming;
		if (q->paused_until)
			all[class].paused_ns += min(now, q->paused_until) - q->paused_from;
		if (q->pausing)
			all[class].pausing_ns += now - q->pausing_from;
	}
	spin_unlock_bh(&mmu->lock);
	err = gnet_stats_copy_app(d, all, CLASSES * sizeof(*all));
	kfree(all);
	return err;
}

static struct Qdisc_ops mmu_ops __read_mostly = {
	.id = "mmu",
	.priv_size = sizeof(struct mmu_port),
	.enqueue = mmu_enqueue,
	.dequeue = mmu_dequeue,
	.peek = qdisc_peek_dequeued,
	.init = mmu_init,
	.change = mmu_change,
	.reset = mmu_reset,
	.destroy = mmu_destroy,
	.dump = mmu_dump,
	.dump_stats = mmu_dump_stats,
	.owner = THIS_MODULE,
};

static int __net_init mmu_net_init(struct net *net)
{
	struct mmu *mmu = net_generic(net, mmu_id);

	xa_init(&mmu->ports);
	spin_lock_init(&mmu->lock);
	return 0;
}

static void __net_exit mmu_net_exit(struct net *net)
{
	struct mmu *mmu = net_generic(net, mmu_id);

	if (mmu->flowlets)
		nf_unregister_net_hook(net, &balance_hook);
	kfree(mmu->flowlets);
	xa_destroy(&mmu->ports);
}

static struct pernet_operations mmu_net_ops = {
	.init = mmu_net_init, .exit = mmu_net_exit, .id = &mmu_id, .size = sizeof(struct mmu),
};

static int __init mmu_module_init(void)
{
	int err = register_pernet_device(&mmu_net_ops);

	if (err)
		return err;
	dev_add_pack(&pfc_type);
	return register_qdisc(&mmu_ops);
}
module_init(mmu_module_init);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Buffer of a switch port: classes, PFC, ECN, trimming");
