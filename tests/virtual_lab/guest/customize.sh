# The settings of all machines. Keys are not among them: each machine gets its own when it boots.
set -eu
rm -f "$1"/etc/ssh/ssh_host_*
printf '/dev/vda / ext4 errors=remount-ro 0 1\n' >"$1/etc/fstab"
# The interface that sshd is reached by: a rule costs an emulated processor less than a program for networks.
cat >"$1/etc/udev/rules.d/90-control.rules" <<'END'
ACTION=="add", SUBSYSTEM=="net", ATTR{address}=="52:54:00:00:00:02", \
    RUN+="/bin/ip address replace 10.0.2.15/24 dev $name", RUN+="/bin/ip link set $name up"
END
chroot "$1" systemctl disable -q frr openvswitch-switch dpdk
chroot "$1" systemctl mask -q apt-daily.timer apt-daily-upgrade.timer e2scrub_all.timer e2scrub_reap.service \
    fstrim.timer dpkg-db-backup.timer networking.service systemd-networkd.service getty@tty1.service \
    systemd-update-utmp.service systemd-journal-flush.service systemd-pstore.service
