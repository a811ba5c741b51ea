package permission

import (
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/windows"
)

// identity is the volume and the file's index on it; where the file cannot be
// opened for asking, the path in one case.
func identity(path string, _ fs.FileInfo) string {
	byName := strings.ToLower(path)
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return byName
	}
	h, err := windows.CreateFile(name, 0, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE, nil,
		windows.OPEN_EXISTING, windows.FILE_FLAG_BACKUP_SEMANTICS|windows.FILE_FLAG_OPEN_REPARSE_POINT, 0)
	if err != nil {
		return byName
	}
	defer windows.CloseHandle(h)
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(h, &info); err != nil {
		return byName
	}
	return fmt.Sprintf("%x:%x:%x", info.VolumeSerialNumber, info.FileIndexHigh, info.FileIndexLow)
}
