package file

import "golang.org/x/sys/unix"

// remote names the file systems on which flock and rename depend on another
// machine or on another program, by the magic numbers of statfs(2) and of the
// kernel's sources.
var remote = map[uint32]string{
	unix.NFS_SUPER_MAGIC:    "NFS",
	unix.SMB_SUPER_MAGIC:    "SMB",
	unix.SMB2_SUPER_MAGIC:   "SMB",
	unix.CIFS_SUPER_MAGIC:   "CIFS",
	unix.NCP_SUPER_MAGIC:    "NCP",
	unix.V9FS_MAGIC:         "9p",
	unix.FUSE_SUPER_MAGIC:   "FUSE or virtiofs",
	unix.CEPH_SUPER_MAGIC:   "Ceph",
	unix.AFS_SUPER_MAGIC:    "AFS",
	unix.AFS_FS_MAGIC:       "AFS",
	unix.CODA_SUPER_MAGIC:   "Coda",
	unix.OCFS2_SUPER_MAGIC:  "OCFS2",
	unix.HOSTFS_SUPER_MAGIC: "hostfs",
	0x01161970:              "GFS2",
	0x0bd00bd0:              "Lustre",
	0x47504653:              "GPFS",
	0x19830326:              "BeeGFS",
	0x20030528:              "OrangeFS",
	0x786f4256:              "VirtualBox shared folder",
	0xbacbacbc:              "VMware shared folder",
}

// remoteFileSystem returns the kind of the directory's file system if it must
// not be used, "" otherwise.
func remoteFileSystem(dir string) (string, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return "", err
	}
	return remote[uint32(s.Type)], nil // Type is signed on some machines
}
