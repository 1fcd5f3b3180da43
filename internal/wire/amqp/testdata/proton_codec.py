"""What Qpid Proton makes of bytes, and the bytes that it makes: proton_codec.py values|messages|peer|sasl.

The input and the output are JSON; bytes are in hexadecimal."""
import json
import sys

import proton
from proton import UNDESCRIBED, Array, Collector, Condition, Connection, Data, Delivery, Message, Transport, symbol


def plain(v):
    """A value as JSON can show it, with its type where that would be lost."""
    if isinstance(v, proton.Described):
        return {"described": plain(v.descriptor), "value": plain(v.value)}
    if isinstance(v, proton.Array):
        return {"array": [plain(e) for e in v.elements]}
    if isinstance(v, dict):
        return {str(k): plain(e) for k, e in v.items()}
    if isinstance(v, (list, tuple)):
        return [plain(e) for e in v]
    if isinstance(v, (bytes, memoryview)):
        return "binary:" + bytes(v).hex()
    if v is None or isinstance(v, bool):
        return v
    name = type(v).__name__
    return "%s:%s" % (name, v)


def values(texts):
    """Decodes values, and encodes them again."""
    out = []
    for text in texts:
        data = Data()
        raw = bytes.fromhex(text)
        try:
            whole = data.decode(raw) == len(raw)
        except proton.DataException:
            whole = False
        if not whole:
            out.append(["refused", "", ""])
            continue
        data.rewind()
        kind = data.next()
        out.append([Data.type_names[kind], plain(data.get_object()), bytes(data.encode()).hex()])
    return out


def messages(texts):
    out = []
    for text in texts:
        m = Message()
        m.decode(bytes.fromhex(text))
        out.append({
            "durable": m.durable, "priority": m.priority, "ttl": m.ttl, "first": m.first_acquirer, "count": m.delivery_count,
            "id": plain(m.id), "user": plain(m.user_id), "to": m.address, "subject": m.subject, "reply": m.reply_to,
            "correlation": plain(m.correlation_id), "type": m.content_type, "encoding": m.content_encoding,
            "expiry": m.expiry_time, "creation": m.creation_time, "group": m.group_id, "sequence": m.group_sequence,
            "replyGroup": m.reply_to_group_id, "instructions": plain(m.instructions), "annotations": plain(m.annotations),
            "properties": plain(m.properties), "body": plain(m.body), "again": m.encode().hex(),
        })
    return out


class Peer:
    """An endpoint that answers whatever its peer opens, sends five messages, and settles in all ways. Its log has the frames that
    it read, field by field, and the messages that it received."""

    def __init__(self):
        self.log, self.received = [], 0
        self.collector = Collector()
        self.conn = c = Connection()
        c.collect(self.collector)
        self.transport = t = Transport(Transport.SERVER)
        t.trace(Transport.TRACE_FRM)
        t.tracer = self.trace
        t.bind(c)
        t.max_frame_size, t.channel_max, t.idle_timeout = 4096, 999, 30
        c.container, c.hostname = "proton", "its host"
        c.offered_capabilities = Array(UNDESCRIBED, Data.SYMBOL, symbol("one"), symbol("two"))
        c.desired_capabilities = symbol("three")
        c.properties = {symbol("product"): "Qpid Proton", symbol("n"): 7}

    def trace(self, transport, text):
        _, arrow, what = text.partition("<- ")
        if arrow:
            self.log.append(what)

    def on_connection_remote_open(self, e):
        e.connection.open()

    def on_session_remote_open(self, e):
        e.session.open()

    def on_link_remote_open(self, e):
        l = e.link
        l.source.copy(l.remote_source)
        l.target.copy(l.remote_target)
        l.snd_settle_mode, l.rcv_settle_mode = l.remote_snd_settle_mode, l.remote_rcv_settle_mode
        l.max_message_size = 1 << 33
        l.properties = {symbol("its"): "link"}
        l.open()
        if l.is_receiver:
            l.flow(10)

    def on_link_flow(self, e):
        l = e.link
        if l.is_receiver:
            return
        for n in range(min(l.credit, 5)):
            l.delivery("tag %d" % n)
            l.stream(Message(body="message %d" % n, id=n).encode())
            l.advance()
        l.drained()

    def on_delivery(self, e):
        d, l = e.delivery, e.link
        if l.is_sender:
            self.log.append("settled: %s %s %s" % (d.tag, d.remote_state, d.settled))
            d.settle()
            return
        if d.aborted:
            self.log.append("aborted: " + d.tag)
            d.settle()
            return
        if d.partial or not d.readable:
            return
        self.log.append("received: %s %s" % (d.tag, l.recv(d.pending).hex()))
        l.advance()
        if d.settled:
            d.settle()
            return
        kind = [Delivery.ACCEPTED, Delivery.REJECTED, Delivery.RELEASED, Delivery.MODIFIED][self.received % 4]
        self.received += 1
        if kind == Delivery.REJECTED:
            d.local.condition = Condition("perfmq:test", "rejected", {symbol("k"): 1})
        if kind == Delivery.MODIFIED:
            d.local.failed, d.local.undeliverable = True, True
            d.local.annotations = {symbol("x-opt-a"): "b"}
        d.update(kind)
        d.settle()

    def on_link_remote_close(self, e):
        e.link.condition = Condition("perfmq:detach", "detached", {symbol("k"): "v"})
        e.link.close()

    def on_link_remote_detach(self, e):
        e.link.detach()

    def on_session_remote_close(self, e):
        e.session.condition = Condition("perfmq:end", "ended")
        e.session.close()

    def on_connection_remote_close(self, e):
        e.connection.condition = Condition("perfmq:close")
        e.connection.close()

    def handle(self):
        while True:
            e = self.collector.peek()
            if e is None:
                return
            handler = getattr(self, e.type.method, None)
            if handler:
                handler(e)
            self.collector.pop()

    def run(self, chunks):
        out = b""
        for chunk in chunks:
            push(self.transport, bytes.fromhex(chunk), self.handle)
            out += pull(self.transport, self.handle)
        return {"log": self.log, "output": out.hex()}


def push(transport, b, handle):
    while b:
        piece = b[:transport.capacity()]
        transport.push(piece)
        b = b[len(piece):]
        handle()


def pull(transport, handle):
    out = b""
    while True:
        handle()
        pending = transport.pending()
        if pending <= 0:
            return out
        out += bytes(transport.peek(pending))
        transport.pop(pending)


def sasl(chunks):
    """A client that wants to be anonymous."""
    t = Transport(Transport.CLIENT)
    c = Connection()
    s = t.sasl()
    s.allowed_mechs("ANONYMOUS")
    t.bind(c)
    c.open()
    out = b""
    for chunk in chunks:
        out += pull(t, lambda: None)
        push(t, bytes.fromhex(chunk), lambda: None)
    out += pull(t, lambda: None)
    return {"outcome": s.outcome, "output": out.hex()}


if __name__ == "__main__":
    given = json.load(sys.stdin)
    run = {"values": values, "messages": messages, "sasl": sasl, "peer": lambda chunks: Peer().run(chunks)}
    json.dump(run[sys.argv[1]](given), sys.stdout, indent=1, sort_keys=True, default=str)
