"""Where does the time of a job go, and which ranks differ?"""
