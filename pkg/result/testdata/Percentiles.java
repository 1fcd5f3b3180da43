import org.HdrHistogram.Histogram;

/** Prints the percentiles of the first n values of a known sequence, for n = 1 ... 10,000: what metric_test.go compares with. */
public class Percentiles {
    public static void main(String[] args) {
        double[] percentiles = {0, 1, 50, 90, 95, 99, 99.9, 99.99, 100};
        Histogram histogram = new Histogram(1, 86_400_000_000L, 2);
        StringBuilder out = new StringBuilder();
        long state = 1;
        for (int n = 1; n <= 10_000; n++) {
            state = state * 6364136223846793005L + 1442695040888963407L;
            long bits = state >>> 33;
            histogram.recordValue((bits & 1023) << (bits >>> 10) % 25); // all powers of two up to hours
            for (double p : percentiles) {
                out.append(histogram.getValueAtPercentile(p)).append(' ');
            }
            out.append(histogram.getMaxValue()).append('\n');
        }
        System.out.print(out);
    }
}
