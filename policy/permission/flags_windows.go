package permission

const openFlags = 0
