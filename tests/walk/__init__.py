"""Every page over every shipped run and over fresh runs of this machine, without a browser and in one: `make walk`."""
