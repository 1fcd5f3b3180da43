import javax.jms.Connection;
import javax.jms.ConnectionFactory;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Queue;
import javax.jms.Session;
import javax.jms.TemporaryQueue;

/** Requests and replies as JMS has them: java Jms.java CONNECTION-FACTORY URL USER PASSWORD requester|responder QUEUE COUNT */
public class Jms {
    public static void main(String[] args) throws Exception {
        ConnectionFactory factory = (ConnectionFactory) Class.forName(args[0]).getConstructor(String.class).newInstance(args[1]);
        try (Connection connection = factory.createConnection(args[2], args[3])) {
            connection.start();
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            Queue queue = session.createQueue(args[5]);
            int count = Integer.parseInt(args[6]);
            if (args[4].equals("requester")) {
                request(session, queue, count);
            } else {
                respond(session, queue, count);
            }
        }
        System.out.println("done");
        System.exit(0);
    }

    static void request(Session session, Queue queue, int count) throws Exception {
        TemporaryQueue replies = session.createTemporaryQueue();
        MessageConsumer in = session.createConsumer(replies);
        MessageProducer out = session.createProducer(queue);
        for (int i = 0; i < count; i++) {
            Message m = session.createTextMessage("ping");
            m.setJMSReplyTo(replies);
            if (i % 2 == 0) {
                m.setJMSCorrelationID("c-" + i);
            }
            out.send(m);
            String want = i % 2 == 0 ? "c-" + i : m.getJMSMessageID();
            Message reply = in.receive(60_000);
            if (reply == null || !want.equals(reply.getJMSCorrelationID())) {
                throw new IllegalStateException("request " + i + ": wanted the reply to " + want + ", got "
                        + (reply == null ? "none" : "one to " + reply.getJMSCorrelationID()));
            }
        }
    }

    static void respond(Session session, Queue queue, int count) throws Exception {
        MessageConsumer in = session.createConsumer(queue);
        MessageProducer out = session.createProducer(null);
        for (int i = 0; i < count; i++) {
            Message m = in.receive(120_000);
            if (m == null) {
                throw new IllegalStateException("no request after " + i);
            }
            Message reply = session.createTextMessage("pong");
            String id = m.getJMSCorrelationID();
            reply.setJMSCorrelationID(id == null ? m.getJMSMessageID() : id);
            out.send(m.getJMSReplyTo(), reply);
        }
    }
}
