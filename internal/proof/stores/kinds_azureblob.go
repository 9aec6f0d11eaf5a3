//go:build azureblob

package stores

func init() { only(AzureBlob) }
