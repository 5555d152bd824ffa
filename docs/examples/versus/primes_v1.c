// Idea: divide each number by every smaller odd one up to its root.
#include <stdio.h>
#include <stdlib.h>

static int is_prime(long n) {
    if (n % 2 == 0) return n == 2;
    for (long divisor = 3; divisor * divisor <= n; divisor += 2)
        if (n % divisor == 0) return 0;
    return n > 1;
}

int main(int argc, char **argv) {
    long below = argc > 1 ? atol(argv[1]) : 1000, primes = 0;
    for (long n = 2; n < below; n++) primes += is_prime(n);
    printf("%ld primes below %ld\n", primes, below);
    return 0;
}
