"""Word aligners on gold alignments: error rate, time and memory, beside other toolkits."""
