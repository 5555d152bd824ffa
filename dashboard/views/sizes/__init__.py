"""Which variant wins at which size?"""
