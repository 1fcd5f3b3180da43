"""A client of Qpid Proton: proton_client.py MODE URL ADDRESS COUNT. It prints OK and how many messages it was about."""
import sys

import proton
from proton import Message
from proton.handlers import MessagingHandler, TransactionHandler
from proton.reactor import AtLeastOnce, AtMostOnce, Container, LinkOption


class Second(LinkOption):
    """The sender settles first, the receiver second."""

    def apply(self, link):
        link.snd_settle_mode = proton.Link.SND_UNSETTLED
        link.rcv_settle_mode = proton.Link.RCV_SECOND


class Send(MessagingHandler):
    def __init__(self, url, address, count, option):
        super().__init__()
        self.url, self.address, self.count, self.option = url, address, count, option
        self.settled = isinstance(option, AtMostOnce)
        self.sent = self.confirmed = 0

    def on_start(self, event):
        self.conn = event.container.connect(self.url, reconnect=False)
        event.container.create_sender(self.conn, self.address, options=self.option)

    def on_sendable(self, event):
        while event.sender.credit and self.sent < self.count:
            event.sender.send(Message(id=self.sent, body={"sequence": self.sent}, properties={"n": self.sent}))
            self.sent += 1
        if self.settled and self.sent == self.count:
            event.sender.close()
            self.confirmed = self.count
            self.conn.close()

    def on_accepted(self, event):
        self.confirmed += 1
        if self.confirmed == self.count:
            self.conn.close()


class Receive(MessagingHandler):
    def __init__(self, url, address, count, option):
        super().__init__(prefetch=100)
        self.url, self.address, self.count, self.option = url, address, count, option
        self.confirmed = 0

    def on_start(self, event):
        self.conn = event.container.connect(self.url, reconnect=False)
        event.container.create_receiver(self.conn, self.address, options=self.option)

    def on_message(self, event):
        want = self.confirmed
        m = event.message
        if m.id != want or m.body != {"sequence": want} or m.properties["n"] != want:
            sys.exit("got %r, want number %d" % (m, want))
        self.confirmed += 1
        if self.confirmed == self.count:
            event.receiver.close()
            self.conn.close()


class Transactions(MessagingHandler, TransactionHandler):
    """Sends in transactions of 10; every second one is rolled back."""

    def __init__(self, url, address, count):
        super().__init__()
        self.url, self.address, self.count = url, address, count
        self.confirmed = self.number = 0
        self.txn = None

    def on_start(self, event):
        self.container = event.container
        self.conn = event.container.connect(self.url, reconnect=False)
        self.sender = event.container.create_sender(self.conn, self.address)
        self.container.declare_transaction(self.conn, handler=self)

    def on_transaction_declared(self, event):
        self.txn = event.transaction
        rolled_back = self.number % 2
        for i in range(10):
            n = -1 if rolled_back else self.confirmed + i
            self.txn.send(self.sender, Message(id=max(n, 0), body={"sequence": n}, properties={"n": n}))
        if rolled_back:
            self.txn.abort()
        else:
            self.txn.commit()

    def on_transaction_committed(self, event):
        self.confirmed += 10
        self.again()

    def on_transaction_aborted(self, event):
        self.again()

    def again(self):
        self.number += 1
        if self.confirmed < self.count:
            self.container.declare_transaction(self.conn, handler=self)
        else:
            self.conn.close()


def main():
    mode, url, address, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    option = {"settled": AtMostOnce(), "second": Second()}.get(mode.partition("-")[2], AtLeastOnce())
    if mode == "transactions":
        handler = Transactions(url, address, count)
    elif mode.startswith("send"):
        handler = Send(url, address, count, option)
    else:
        handler = Receive(url, address, count, option)
    Container(handler).run()
    print("OK", handler.confirmed)


main()
