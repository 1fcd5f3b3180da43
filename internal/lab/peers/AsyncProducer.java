import java.util.concurrent.atomic.LongAdder;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;

/**
 * RocketMQ's Java client, sending asynchronously from one thread as its benchmark's Producer with -y true does, but with
 * the client's own flow control set. Arguments: name server, topic, size of the body, messages in flight.
 */
public class AsyncProducer {
    public static void main(String[] args) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("benchmark_producer");
        producer.setNamesrvAddr(args[0]);
        producer.setCompressMsgBodyOverHowmuch(Integer.MAX_VALUE);
        producer.setEnableBackpressureForAsyncMode(true);
        producer.setBackPressureForAsyncSendNum(Integer.parseInt(args[3]));
        producer.start();
        byte[] body = new byte[Integer.parseInt(args[2])];
        java.util.Arrays.fill(body, (byte) 'x');
        LongAdder done = new LongAdder();
        LongAdder failed = new LongAdder();
        SendCallback callback = new SendCallback() {
            @Override
            public void onSuccess(SendResult result) {
                done.increment();
            }

            @Override
            public void onException(Throwable e) {
                failed.increment();
            }
        };
        Thread reporter = new Thread(() -> report(done, failed));
        reporter.setDaemon(true);
        reporter.start();
        while (true) {
            producer.send(new Message(args[1], body), callback);
        }
    }

    /** Prints the rate of the last nine seconds once a second, as the benchmark does. */
    private static void report(LongAdder done, LongAdder failed) {
        long[] counts = new long[10];
        try {
            for (int i = 0; ; i++) {
                Thread.sleep(1000);
                long now = done.sum();
                if (i >= 9) {
                    System.out.printf("Send TPS: %d | Send Failed: %d%n", (now - counts[(i + 1) % 10]) / 9, failed.sum());
                }
                counts[i % 10] = now;
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
