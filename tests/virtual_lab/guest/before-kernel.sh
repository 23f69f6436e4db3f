# Before the kernel is installed: its initial file system has only what finds the root file system, and boots fast.
set -eu
mkdir -p "$1/etc/initramfs-tools/conf.d" "$1/usr/share/initramfs-tools/modules.d"
echo MODULES=list >"$1/etc/initramfs-tools/conf.d/virtual-lab"
printf 'virtio_pci\nvirtio_blk\next4\n' >"$1/usr/share/initramfs-tools/modules.d/virtual-lab"
