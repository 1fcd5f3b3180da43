import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import java.util.Random;
import java.util.zip.CRC32;
import javax.jms.BytesMessage;
import javax.jms.Connection;
import javax.jms.Destination;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Queue;
import javax.jms.Session;
import javax.jms.TemporaryQueue;
import javax.jms.TextMessage;
import javax.jms.Topic;
import org.apache.qpid.jms.JmsConnectionFactory;

/**
 * What a JMS application does, over Qpid JMS: each argument after the URL is a scenario, NAME:NUMBER,NUMBER..., and prints one
 * line, "NAME key=value ...", of what it counted. The Go test knows what that must be.
 */
public class QpidClient {
    static final long PATIENCE = 20_000, NOTHING = 300;

    static JmsConnectionFactory factory;

    public static void main(String[] args) throws Exception {
        factory = new JmsConnectionFactory(args[0]);
        for (String arg : Arrays.asList(args).subList(1, args.length)) {
            String[] parts = arg.split(":", 2);
            int[] n = parts.length < 2 ? new int[0] : Arrays.stream(parts[1].split(",")).mapToInt(Integer::parseInt).toArray();
            System.out.println(parts[0] + " " + run(parts[0], n));
        }
    }

    static String run(String name, int[] n) throws Exception {
        Connection c = factory.createConnection();
        if (name.equals("durable")) {
            c.setClientID("qpid");
        }
        c.start();
        try {
            switch (name) {
                case "send": return send(c, n[0], n[1], n[2]);
                case "receive": return receive(c, n[0], n[1], n[2]);
                case "unfinished": return unfinished(c, n[0]);
                case "recover": return recover(c, n[0], n[1]);
                case "durable": return durable(c, n[0]);
                case "selector": return selector(c, n[0], n[1]);
                case "ttl": return ttl(c, n[0], n[1]);
                case "priority": return priority(c, n[0]);
                case "browse": return browse(c);
                case "reply": return reply(c, n[0]);
                case "large": return large(c, n[0], n[1]);
                default: throw new IllegalArgumentException(name);
            }
        } finally {
            c.close();
        }
    }

    /** Sends n messages in transactions of k, and rolls every r-th transaction back; then its messages are not sent again. */
    static String send(Connection c, int n, int k, int r) throws JMSException {
        Session s = c.createSession(true, Session.SESSION_TRANSACTED);
        MessageProducer p = s.createProducer(s.createQueue("tx"));
        int committed = 0, back = 0;
        for (int i = 0; i < n; i++) {
            TextMessage m = s.createTextMessage("text " + i);
            m.setIntProperty("number", i);
            p.send(m);
            if ((i + 1) % k != 0 && i != n - 1) {
                continue;
            }
            int size = i % k + 1;
            if ((i / k + 1) % r == 0) {
                s.rollback();
                back += size;
            } else {
                s.commit();
                committed += size;
            }
        }
        return "committed=" + committed + " back=" + back;
    }

    /**
     * Receives in transactions of k until there is nothing, and rolls every r-th one back the first time: its messages must
     * come again, in the same order, marked.
     */
    static String receive(Connection c, int n, int k, int r) throws JMSException {
        Session s = c.createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer q = s.createConsumer(s.createQueue("tx"));
        int committed = 0, back = 0, redelivered = 0, disorder = 0, wrong = 0, last = -1, batch = 0;
        while (committed < n) {
            List<Integer> first = take(q, Math.min(k, n - committed), false);
            if (++batch % r == 0) {
                s.rollback();
                back += first.size();
                List<Integer> again = take(q, first.size(), true);
                redelivered += again.size();
                wrong += again.equals(first) ? 0 : 1;
            }
            s.commit();
            for (int i : first) {
                disorder += i <= last ? 1 : 0;
                last = i;
            }
            committed += first.size();
        }
        Message more = q.receive(NOTHING);
        return "committed=" + committed + " back=" + back + " redelivered=" + redelivered + " disorder=" + disorder + " wrong=" + wrong
            + " more=" + (more != null);
    }

    /** Receives n messages, of which all, or none, must be redelivered ones, and returns their numbers. */
    static List<Integer> take(MessageConsumer q, int n, boolean again) throws JMSException {
        List<Integer> numbers = new ArrayList<>();
        while (numbers.size() < n) {
            Message m = q.receive(PATIENCE);
            if (m == null) {
                throw new IllegalStateException("only " + numbers.size() + " of " + n + " came");
            }
            int count = m.getIntProperty("JMSXDeliveryCount"), number = m.getIntProperty("number");
            if (m.getJMSRedelivered() != again || count != (again ? 2 : 1)) {
                throw new IllegalStateException("message " + number + ": redelivered " + m.getJMSRedelivered() + ", delivery " + count);
            }
            numbers.add(number);
        }
        return numbers;
    }

    /** Sends and receives in a transaction and closes the connection within it: nothing of it must have happened. */
    static String unfinished(Connection c, int n) throws JMSException {
        Session plain = c.createSession(false, Session.AUTO_ACKNOWLEDGE);
        fill(plain, plain.createQueue("unfinished"), n);
        Session s = c.createSession(true, Session.SESSION_TRANSACTED);
        MessageProducer p = s.createProducer(s.createQueue("unfinished"));
        MessageConsumer q = s.createConsumer(s.createQueue("unfinished"));
        for (int i = 0; i < n; i++) {
            p.send(s.createTextMessage("never"));
        }
        return "received=" + take(q, n, false).size();
    }

    /** Returns the next message, for which it has patience as long as there are to be more; null if there is none. */
    static Message next(MessageConsumer q, int received, int expected) throws JMSException {
        return q.receive(received < expected ? PATIENCE : NOTHING);
    }

    static void fill(Session s, Destination to, int n) throws JMSException {
        MessageProducer p = s.createProducer(to);
        for (int i = 0; i < n; i++) {
            Message m = s.createTextMessage("text " + i);
            m.setIntProperty("number", i);
            p.send(m);
        }
        p.close();
    }

    /** Acknowledges k of n, and has the session recover: the others come again. */
    static String recover(Connection c, int n, int k) throws JMSException {
        Session s = c.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        fill(s, s.createQueue("recover"), n);
        MessageConsumer q = s.createConsumer(s.createQueue("recover"));
        take(q, k - 1, false);
        Message m = q.receive(PATIENCE);
        m.acknowledge();
        List<Integer> first = take(q, n - k, false);
        s.recover();
        List<Integer> again = new ArrayList<>();
        Message last = null;
        for (int i = 0; i < n - k; i++) {
            last = q.receive(PATIENCE);
            if (!last.getJMSRedelivered() || last.getIntProperty("JMSXDeliveryCount") != 2) {
                throw new IllegalStateException("not marked as redelivered: " + last);
            }
            again.add(last.getIntProperty("number"));
        }
        last.acknowledge();
        return "acknowledged=" + k + " again=" + again.size() + " same=" + again.equals(first) + " more=" + (q.receive(NOTHING) != null);
    }

    /** A subscriber leaves, n messages are sent, it comes back and gets them; then it unsubscribes, and gets no more. */
    static String durable(Connection c, int n) throws JMSException {
        Session s = c.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Topic t = s.createTopic("durable");
        s.createDurableSubscriber(t, "sub").close();
        fill(s, t, n);
        MessageConsumer q = s.createDurableSubscriber(t, "sub");
        int received = take(q, n, false).size();
        q.close();
        s.unsubscribe("sub");
        fill(s, t, n);
        q = s.createDurableSubscriber(t, "sub");
        boolean more = q.receive(NOTHING) != null;
        q.close();
        s.unsubscribe("sub");
        return "received=" + received + " more=" + more;
    }

    /** Sends n messages of three colours; one consumer takes the heavy red ones, so many, another one all the rest. */
    static String selector(Connection c, int n, int expected) throws JMSException {
        Session s = c.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Queue to = s.createQueue("selector");
        MessageProducer p = s.createProducer(to);
        for (int i = 0; i < n; i++) {
            Message m = s.createMessage();
            m.setStringProperty("colour", new String[] {"red", "green", "blue"}[i % 3]);
            m.setDoubleProperty("weight", i / 10.0);
            p.send(m);
        }
        MessageConsumer red = s.createConsumer(to, "colour = 'red' AND weight BETWEEN 1 AND 2.5");
        int heavy = 0, wrong = 0;
        for (Message m = next(red, heavy, expected); m != null; m = next(red, heavy, expected)) {
            heavy++;
            double w = m.getDoubleProperty("weight");
            wrong += m.getStringProperty("colour").equals("red") && w >= 1 && w <= 2.5 ? 0 : 1;
        }
        red.close();
        MessageConsumer all = s.createConsumer(to);
        int rest = 0;
        while (next(all, rest, n - expected) != null) {
            rest++;
        }
        return "matching=" + heavy + " wrong=" + wrong + " rest=" + rest;
    }

    /** Sends n messages that expire and n that do not, and receives when the former have expired. */
    static String ttl(Connection c, int n, int millis) throws Exception {
        Session s = c.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Queue to = s.createQueue("ttl");
        MessageProducer p = s.createProducer(to);
        for (int i = 0; i < n; i++) {
            p.setTimeToLive(millis);
            p.send(s.createTextMessage("short"));
            p.setTimeToLive(600_000);
            p.send(s.createTextMessage("long"));
        }
        Thread.sleep(2L * millis);
        MessageConsumer q = s.createConsumer(to);
        int longs = 0, shorts = 0, unmarked = 0;
        for (Message m = next(q, longs, n); m != null; m = next(q, longs, n)) {
            boolean isLong = ((TextMessage) m).getText().equals("long");
            longs += isLong ? 1 : 0;
            shorts += isLong ? 0 : 1;
            long left = m.getJMSExpiration() - System.currentTimeMillis();
            unmarked += left > 500_000 && left <= 600_000 ? 0 : 1;
        }
        return "long=" + longs + " short=" + shorts + " unmarked=" + unmarked;
    }

    /** Sends n messages of each priority, mixed, and receives them. */
    static String priority(Connection c, int n) throws JMSException {
        Session s = c.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Queue to = s.createQueue("priority");
        MessageProducer p = s.createProducer(to);
        List<Integer> priorities = new ArrayList<>();
        for (int i = 0; i < 10 * n; i++) {
            priorities.add(i % 10);
        }
        Collections.shuffle(priorities, new Random(1));
        for (int x : priorities) {
            p.setPriority(x);
            p.send(s.createMessage());
        }
        MessageConsumer q = s.createConsumer(to);
        int received = 0, disorder = 0, last = 9;
        for (Message m = next(q, received, 10 * n); m != null; m = next(q, received, 10 * n)) {
            received++;
            disorder += m.getJMSPriority() > last ? 1 : 0;
            last = m.getJMSPriority();
        }
        return "received=" + received + " disorder=" + disorder;
    }

    /** Tries to browse: the broker does not do that, and must say so; the connection must be good for more. */
    static String browse(Connection c) throws JMSException {
        Session s = c.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Queue to = s.createQueue("browse");
        fill(s, to, 1);
        String said = "nothing";
        try {
            Enumeration<?> e = s.createBrowser(to).getEnumeration();
            said = "elements:" + e.hasMoreElements();
        } catch (JMSException e) {
            said = e.getMessage().replace(' ', '_');
        }
        return "said=" + said + " received=" + take(s.createConsumer(to), 1, false).size();
    }

    /** Asks n questions, each answered to a temporary queue; then the queue is deleted. */
    static String reply(Connection c, int n) throws Exception {
        Session asks = c.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Session answers = c.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Queue to = asks.createQueue("questions");
        MessageProducer anywhere = answers.createProducer(null);
        answers.createConsumer(to).setMessageListener(m -> {
            try {
                TextMessage a = answers.createTextMessage("answer to " + ((TextMessage) m).getText());
                a.setJMSCorrelationID(m.getJMSMessageID());
                anywhere.send(m.getJMSReplyTo(), a);
            } catch (JMSException e) {
                e.printStackTrace();
            }
        });
        TemporaryQueue mine = asks.createTemporaryQueue();
        MessageConsumer q = asks.createConsumer(mine);
        MessageProducer p = asks.createProducer(to);
        int right = 0;
        for (int i = 0; i < n; i++) {
            TextMessage m = asks.createTextMessage("question " + i);
            m.setJMSReplyTo(mine);
            p.send(m);
            TextMessage a = (TextMessage) q.receive(PATIENCE);
            right += a.getJMSCorrelationID().equals(m.getJMSMessageID()) && a.getText().equals("answer to question " + i) ? 1 : 0;
        }
        q.close();
        mine.delete();
        return "right=" + right;
    }

    /** Sends n messages of so many bytes, in one transaction, and receives them. */
    static String large(Connection c, int n, int size) throws JMSException {
        Session s = c.createSession(true, Session.SESSION_TRANSACTED);
        Queue to = s.createQueue("large");
        MessageProducer p = s.createProducer(to);
        byte[] body = new byte[size];
        new Random(2).nextBytes(body);
        for (int i = 0; i < n; i++) {
            body[0] = (byte) i;
            BytesMessage m = s.createBytesMessage();
            m.writeBytes(body);
            m.setLongProperty("crc", crc(body));
            p.send(m);
        }
        s.commit();
        MessageConsumer q = s.createConsumer(to);
        int right = 0;
        for (int i = 0; i < n; i++) {
            BytesMessage m = (BytesMessage) q.receive(PATIENCE);
            byte[] got = new byte[(int) m.getBodyLength()];
            m.readBytes(got);
            right += got.length == size && got[0] == (byte) i && crc(got) == m.getLongProperty("crc") ? 1 : 0;
        }
        s.commit();
        return "right=" + right;
    }

    static long crc(byte[] b) {
        CRC32 c = new CRC32();
        c.update(b);
        return c.getValue();
    }
}
