# Sends and receives over the Python client stomp.py; prints one line of JSON with what it saw.
# usage: peer.py PORT VERSION
import json
import sys
import threading

import stomp

PORT, VERSION = int(sys.argv[1]), sys.argv[2]
PATIENCE = 60
CONNECTIONS = {"1.0": stomp.Connection10, "1.1": stomp.Connection11, "1.2": stomp.Connection12}


class Inbox(stomp.ConnectionListener):
    """Collects messages, receipts and errors, and tells who waits for them."""

    def __init__(self):
        self.changed = threading.Condition()
        self.messages, self.receipts, self.errors = [], [], []

    def add(self, items, item):
        with self.changed:
            items.append(item)
            self.changed.notify_all()

    def on_message(self, frame):
        self.add(self.messages, frame)

    def on_receipt(self, frame):
        self.add(self.receipts, frame.headers["receipt-id"])

    def on_error(self, frame):
        self.add(self.errors, frame.headers.get("message"))

    def wait(self, condition, what):
        with self.changed:
            if not self.changed.wait_for(condition, PATIENCE):
                sys.exit(f"timeout: {what}: {len(self.messages)} messages, {len(self.receipts)} receipts, {self.errors}")


def connect(**headers):
    options = {} if VERSION == "1.0" else {"heartbeats": (10000, 10000)}  # a busy machine holds it up for seconds
    connection = CONNECTIONS[VERSION]([("127.0.0.1", PORT)], **options)
    inbox = Inbox()
    connection.set_listener("", inbox)
    connection.connect("user", "password", wait=True, headers=headers)
    return connection, inbox


def leave(connection, inbox):
    connection.disconnect(receipt="bye")
    inbox.wait(lambda: "bye" in inbox.receipts, "receipt of DISCONNECT")


def ack(connection, frame, nack=False, transaction=None):
    do = connection.nack if nack else connection.ack
    if VERSION == "1.0":
        do(frame.headers["message-id"], transaction)
    elif VERSION == "1.1":
        do(frame.headers["message-id"], frame.headers["subscription"], transaction)
    else:
        do(frame.headers["ack"], transaction)


def bodies(inbox):
    return [m.body for m in inbox.messages]


def many():
    """1000 messages, sent with receipts over one connection and received over another one."""
    c, inbox = connect()
    r, got = connect()
    r.subscribe("/queue/many", id=1, ack="client")
    for i in range(1000):
        c.send("/queue/many", f"body {i} \u00e4\u00f6", receipt=f"r{i}", n=str(i), text="a:b\\c")
    inbox.wait(lambda: len(inbox.receipts) >= 1000, "1000 receipts")
    got.wait(lambda: len(got.messages) >= 1000, "1000 messages")
    ack(r, got.messages[-1])
    leave(r, got)
    leave(c, inbox)
    ok = all(m.body == f"body {i} \u00e4\u00f6" and m.headers["n"] == str(i) for i, m in enumerate(got.messages))
    return {"received": len(got.messages), "right": ok, "text": got.messages[0].headers["text"], "receipts": len(inbox.receipts) - 1}


def transactions():
    c, inbox = connect()
    c.subscribe("/queue/tx", id=1, ack="client-individual")
    for name in ("aborted", "committed"):
        t = c.begin()
        for i in range(3):
            c.send("/queue/tx", f"{name} {i}", transaction=t)
        (c.abort if name == "aborted" else c.commit)(t)
    inbox.wait(lambda: len(inbox.messages) >= 3, "3 messages")
    t = c.begin()
    for m in inbox.messages[:2]:
        ack(c, m, transaction=t)
    c.commit(t)
    leave(c, inbox)
    return bodies(inbox)


def modes():
    c, inbox = connect()
    for mode in ("auto", "client", "client-individual"):
        for i in range(4):
            c.send(f"/queue/{mode}", f"{mode} {i}")
        r, got = connect()
        r.subscribe(f"/queue/{mode}", id=7, ack=mode)
        got.wait(lambda: len(got.messages) >= 4, f"4 messages with {mode}")
        if mode != "auto":
            ack(r, got.messages[2])
        if mode == "client-individual" and VERSION != "1.0":
            ack(r, got.messages[0], nack=True)
            got.wait(lambda: len(got.messages) >= 5, "the message that was given back")
            if got.messages[4].headers.get("redelivered") != "true":
                sys.exit("redelivered is missing")
            ack(r, got.messages[4])
        leave(r, got)
    leave(c, inbox)
    return True


def durable():
    seen = []
    for part in range(2):
        r, got = connect(**{"client-id": "python"})
        r.subscribe("/topic/news", id="d", ack="auto", headers={"durable-subscription-name": "d", "receipt": "there"})
        got.wait(lambda: "there" in got.receipts, "receipt of SUBSCRIBE")
        if part == 1:
            got.wait(lambda: len(got.messages) >= 3, "3 messages")
            r.unsubscribe(id="d", headers={"durable-subscription-name": "d"}) if VERSION == "1.0" else r.unsubscribe(
                "d", **{"durable-subscription-name": "d"}
            )
        leave(r, got)
        seen += bodies(got)
        if part == 0:
            c, inbox = connect()
            for i in range(3):
                c.send("/topic/news", f"news {i}")
            leave(c, inbox)
    return seen


print(json.dumps({"many": many(), "transactions": transactions(), "modes": modes(), "durable": durable()}))
