"""`make bench`: every measurement, one after the other. Numbers only; nothing is asserted."""

from benchmarks import app_latency, decoding, pictures, training

if __name__ == "__main__":
    decoding.main()
    training.main()
    pictures.main()
    app_latency.main()
