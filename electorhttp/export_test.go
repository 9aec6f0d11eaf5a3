package electorhttp

var Address = address
