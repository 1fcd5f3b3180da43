"""Requests and replies by stomp.py: peer.py PORT USER PASSWORD requester|responder DESTINATION COUNT [REPLIES REPLY-TO [HEADER=VALUE...]]

REPLIES is the destination to subscribe to for replies, - for none.
"""

import queue
import sys

import stomp

port, user, password, role, destination, count = sys.argv[1:7]
headers = dict(pair.split("=", 1) for pair in sys.argv[9:])
frames = queue.Queue()


class Listener(stomp.ConnectionListener):
    def on_message(self, frame):
        frames.put(frame)

    def on_error(self, frame):
        frames.put(frame)


connection = stomp.Connection12([("127.0.0.1", int(port))], vhost="/")
connection.set_listener("", Listener())
connection.connect(user, password, wait=True)


def receive():
    frame = frames.get(timeout=120)
    if frame.cmd != "MESSAGE":
        raise SystemExit(f"{frame.cmd}: {frame.headers} {frame.body}")
    return frame


if role == "requester":
    replies, reply_to = sys.argv[7:9]
    if replies != "-":
        connection.subscribe(replies, id="replies", ack="auto", headers=headers)
    for i in range(int(count)):
        connection.send(destination, "ping", headers={**headers, "reply-to": reply_to, "correlation-id": f"c:{i}"})
        frame = receive()
        if frame.headers.get("correlation-id") != f"c:{i}":
            raise SystemExit(f"request {i}: {frame.headers}")
else:
    connection.subscribe(destination, id="requests", ack="auto", headers=headers)
    for i in range(int(count)):
        request = receive().headers
        connection.send(request["reply-to"], "pong", headers={"correlation-id": request["correlation-id"]})
connection.disconnect()
print("done")
