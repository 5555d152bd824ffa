// Idea: strike out the multiples of each prime (sieve of Eratosthenes).
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    long below = argc > 1 ? atol(argv[1]) : 1000, primes = 0;
    char *struck = calloc(below + 1, 1);
    if (!struck) {
        fprintf(stderr, "no memory for a sieve of %ld numbers\n", below);
        return 1;
    }
    for (long n = 2; n < below; n++) {
        if (struck[n]) continue;
        primes++;
        for (long multiple = n * n; multiple < below; multiple += n) struck[multiple] = 1;
    }
    printf("%ld primes below %ld\n", primes, below);
    free(struck);
    return 0;
}
