module example.com/msgsvcwebhook

go 1.19
