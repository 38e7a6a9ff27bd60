#!/bin/sh
# Count the primes from FIRST to LAST and the pairs of twins among them, by trial division: a job program that is a shell
# script. The range is in the input file "in", as "FIRST LAST"; the output file is "out".
set -eu
read -r first last < in
awk -v first="$first" -v last="$last" '
    function is_prime(n,    d) {
        if (n < 2) return 0
        for (d = 2; d * d <= n; d++) if (n % d == 0) return 0
        return 1
    }
    BEGIN {
        for (n = first; n <= last; n++) if (is_prime(n)) {
            primes++
            if (before && n - before == 2) twins++
            before = n
        }
        print "primes", primes + 0
        print "twins", twins + 0
    }' > out
echo 0 > boinc_finish_called
