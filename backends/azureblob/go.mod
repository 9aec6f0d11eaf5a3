module github.com/elector-go/elector/backends/azureblob

go 1.25.0

// The oldest release of azblob that works, as in the root module.
require (
	github.com/Azure/azure-sdk-for-go/sdk/azcore v1.11.1
	github.com/Azure/azure-sdk-for-go/sdk/storage/azblob v1.3.2
	github.com/elector-go/elector v0.1.0
)

require (
	github.com/Azure/azure-sdk-for-go/sdk/internal v1.5.2 // indirect
	golang.org/x/net v0.22.0 // indirect
	golang.org/x/text v0.24.0 // indirect
)

replace github.com/elector-go/elector => ../..
