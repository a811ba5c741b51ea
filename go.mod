module handoffd

go 1.26
