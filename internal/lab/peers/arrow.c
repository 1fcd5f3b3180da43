/*
 * A sender or receiver on Qpid Proton's C library, as quiver's "arrow" programs are made: one connection, one link, messages with
 * an ID, a body of binary data and the time of sending as a property, acknowledged one by one. It is what the benchmark compares
 * perfmq over AMQP with.
 *
 *	arrow send|receive HOST PORT QUEUE COUNT SIZE WINDOW DURABLE
 *
 * The sender keeps up to WINDOW messages without an outcome; the receiver gives that much credit, and more when half is used. The
 * receiver prints one line: messages, time of the first and of the last one (microseconds since 1970), mean latency (microseconds).
 */
#include <inttypes.h>
#include <proton/condition.h>
#include <proton/connection.h>
#include <proton/delivery.h>
#include <proton/event.h>
#include <proton/link.h>
#include <proton/message.h>
#include <proton/proactor.h>
#include <proton/sasl.h>
#include <proton/session.h>
#include <proton/transport.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char time_key[] = "SendTime";

struct arrow {
	bool sends, durable, failed, over;
	const char *queue;
	uint64_t count, done, sent;
	int window;
	char *body;
	size_t size;
	pn_message_t *message;
	pn_rwbytes_t buffer;
	int64_t first, last, latency;
};

static int64_t now(void) {
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void fail(struct arrow *a, const char *what, pn_condition_t *c) {
	fprintf(stderr, "error: %s", what);
	if (c != NULL && pn_condition_is_set(c)) {
		fprintf(stderr, ": %s: %s", pn_condition_get_name(c), pn_condition_get_description(c));
	}
	fputc('\n', stderr);
	a->failed = a->over = true;
}

static void open_link(struct arrow *a, pn_connection_t *connection) {
	pn_session_t *session = pn_session(connection);
	pn_link_t *link;
	pn_connection_open(connection);
	pn_session_open(session);
	if (a->sends) {
		link = pn_sender(session, "arrow");
		pn_terminus_set_address(pn_link_target(link), a->queue);
	} else {
		link = pn_receiver(session, "arrow");
		pn_terminus_set_address(pn_link_source(link), a->queue);
		pn_link_flow(link, a->window);
	}
	pn_link_set_snd_settle_mode(link, PN_SND_UNSETTLED);
	pn_link_set_rcv_settle_mode(link, PN_RCV_FIRST);
	pn_link_open(link);
}

static void send_one(struct arrow *a, pn_link_t *link) {
	pn_message_t *m = a->message;
	pn_data_t *d;
	char id[24];
	uint64_t tag = a->sent++;
	int length = snprintf(id, sizeof id, "%" PRIu64, tag);

	pn_message_clear(m);
	pn_message_set_durable(m, a->durable);
	d = pn_message_id(m);
	pn_data_put_string(d, pn_bytes((size_t)length, id));
	d = pn_message_properties(m);
	pn_data_put_map(d);
	pn_data_enter(d);
	pn_data_put_string(d, pn_bytes(sizeof time_key - 1, time_key));
	pn_data_put_long(d, now());
	pn_data_exit(d);
	pn_data_put_binary(pn_message_body(m), pn_bytes(a->size, a->body));

	pn_delivery(link, pn_dtag((const char *)&tag, sizeof tag));
	if (pn_message_send(m, link, &a->buffer) < 0) {
		fail(a, "the message cannot be encoded", NULL);
	}
}

static void send_more(struct arrow *a, pn_link_t *link) {
	while (!a->over && a->sent < a->count && pn_link_credit(link) > 0 && a->sent - a->done < (uint64_t)a->window) {
		send_one(a, link);
	}
}

static void received(struct arrow *a, pn_link_t *link, pn_delivery_t *delivery) {
	size_t length;
	pn_data_t *d;
	int64_t at, sent = 0;

	if (!pn_delivery_readable(delivery) || pn_delivery_partial(delivery)) {
		return;
	}
	length = pn_delivery_pending(delivery);
	if (length > a->buffer.size) {
		a->buffer.start = realloc(a->buffer.start, length);
		a->buffer.size = length;
	}
	if (a->buffer.start == NULL || pn_link_recv(link, a->buffer.start, length) != (ssize_t)length) {
		fail(a, "the message cannot be read", NULL);
		return;
	}
	pn_message_clear(a->message);
	if (pn_message_decode(a->message, a->buffer.start, length) != 0) {
		fail(a, "the message cannot be decoded", NULL);
		return;
	}
	at = now();
	d = pn_message_properties(a->message);
	if (pn_data_next(d) && pn_data_get_map(d) == 2 && pn_data_enter(d) && pn_data_next(d) && pn_data_next(d)) {
		sent = pn_data_get_long(d);
	}
	a->latency += at - sent;
	if (a->done++ == 0) {
		a->first = at;
	}
	a->last = at;
	pn_delivery_update(delivery, PN_ACCEPTED);
	pn_delivery_settle(delivery);
	if (pn_link_credit(link) < a->window / 2) {
		pn_link_flow(link, a->window - pn_link_credit(link));
	}
}

static void acknowledged(struct arrow *a, pn_delivery_t *delivery) {
	if (!pn_delivery_updated(delivery)) {
		return;
	}
	if (pn_delivery_remote_state(delivery) != PN_ACCEPTED) {
		fail(a, "the broker did not accept a message", NULL);
		return;
	}
	pn_delivery_settle(delivery);
	a->done++;
}

static void handle(struct arrow *a, pn_event_t *event) {
	switch (pn_event_type(event)) {
	case PN_CONNECTION_INIT:
		open_link(a, pn_event_connection(event));
		break;
	case PN_LINK_FLOW:
		if (a->sends) {
			send_more(a, pn_event_link(event));
		}
		break;
	case PN_DELIVERY:
		if (a->sends) {
			acknowledged(a, pn_event_delivery(event));
			send_more(a, pn_event_link(event));
		} else {
			received(a, pn_event_link(event), pn_event_delivery(event));
		}
		if (a->done == a->count && !a->over) {
			a->over = true;
			pn_connection_close(pn_event_connection(event));
		}
		break;
	case PN_LINK_REMOTE_CLOSE:
		fail(a, "the broker closed the link", pn_link_remote_condition(pn_event_link(event)));
		pn_connection_close(pn_event_connection(event));
		break;
	case PN_SESSION_REMOTE_CLOSE:
		fail(a, "the broker closed the session", pn_session_remote_condition(pn_event_session(event)));
		pn_connection_close(pn_event_connection(event));
		break;
	case PN_CONNECTION_REMOTE_CLOSE:
		if (!a->over) {
			fail(a, "the broker closed the connection", pn_connection_remote_condition(pn_event_connection(event)));
		}
		pn_connection_close(pn_event_connection(event));
		break;
	case PN_TRANSPORT_ERROR:
		if (!a->over) {
			fail(a, "the connection failed", pn_transport_condition(pn_event_transport(event)));
		}
		break;
	default:
		break;
	}
}

int main(int argc, char **argv) {
	struct arrow a = {0};
	pn_proactor_t *proactor;
	pn_connection_t *connection;
	char address[PN_MAX_ADDR];
	bool inactive = false;

	if (argc != 9) {
		fprintf(stderr, "usage: arrow send|receive HOST PORT QUEUE COUNT SIZE WINDOW DURABLE\n");
		return 2;
	}
	a.sends = strcmp(argv[1], "send") == 0;
	a.queue = argv[4];
	a.count = strtoull(argv[5], NULL, 10);
	a.size = strtoul(argv[6], NULL, 10);
	a.window = atoi(argv[7]);
	a.durable = atoi(argv[8]) != 0;
	a.body = calloc(1, a.size + 1);
	a.message = pn_message();
	if (a.body == NULL || a.message == NULL) {
		return 1;
	}
	proactor = pn_proactor();
	connection = pn_connection();
	pn_connection_set_container(connection, a.sends ? "arrow-send" : "arrow-receive");
	pn_connection_set_user(connection, "");
	pn_proactor_addr(address, sizeof address, argv[2], argv[3]);
	{
		pn_transport_t *transport = pn_transport();
		pn_sasl_allowed_mechs(pn_sasl(transport), "ANONYMOUS");
		pn_proactor_connect2(proactor, connection, transport, address);
	}
	while (!inactive) {
		pn_event_batch_t *batch = pn_proactor_wait(proactor);
		pn_event_t *event;
		while ((event = pn_event_batch_next(batch)) != NULL) {
			if (pn_event_type(event) == PN_PROACTOR_INACTIVE) {
				inactive = true;
			}
			handle(&a, event);
		}
		pn_proactor_done(proactor, batch);
	}
	pn_proactor_free(proactor);
	pn_message_free(a.message);
	free(a.body);
	if (a.failed || a.done != a.count) {
		return 1;
	}
	if (!a.sends) {
		printf("%" PRIu64 " %" PRId64 " %" PRId64 " %" PRId64 "\n", a.done, a.first, a.last, a.latency / (int64_t)a.done);
	}
	return 0;
}
