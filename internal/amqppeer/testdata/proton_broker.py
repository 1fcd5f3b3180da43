# A broker of Qpid Proton's event-driven API, as its example is: it answers each attach without saying anything of settle modes,
# which makes them mixed and first. Queues are in memory. Prints its port; ends when stdin does.
import collections
import sys
import threading

from proton.handlers import MessagingHandler
from proton.reactor import Container


class Broker(MessagingHandler):
    def __init__(self):
        super().__init__(auto_accept=True)
        self.queues = collections.defaultdict(collections.deque)
        self.senders = collections.defaultdict(list)

    def on_start(self, event):
        self.acceptor = event.container.listen("127.0.0.1:0")
        print(self.acceptor._selectable._delegate.getsockname()[1], flush=True)

    def on_link_opening(self, event):
        link = event.link
        link.source.address = link.remote_source.address
        link.target.address = link.remote_target.address
        if link.is_sender:
            self.senders[link.source.address].append(link)

    def on_message(self, event):
        address = event.link.target.address
        self.queues[address].append(event.message)
        for link in self.senders[address]:
            self.dispatch(link)

    def on_sendable(self, event):
        self.dispatch(event.link)

    def on_link_closing(self, event):
        if event.link.is_sender and event.link in self.senders[event.link.source.address]:
            self.senders[event.link.source.address].remove(event.link)

    def dispatch(self, link):
        queue = self.queues[link.source.address]
        while link.credit and queue:
            link.send(queue.popleft())


container = Container(Broker())
threading.Thread(target=lambda: (sys.stdin.read(), container.stop()), daemon=True).start()
container.run()
