package federate

const openFlags = 0
