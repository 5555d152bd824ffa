"""What does one kernel spend its time on?"""
