# The settings of all machines. Keys are not among them: each machine gets its own when it boots.
set -eu
rm -f "$1"/etc/ssh/ssh_host_*
printf '/dev/vda / ext4 errors=remount-ro 0 1\n' >"$1/etc/fstab"
# Larger programs for the same take an emulated processor seconds.
cat >"$1/etc/systemd/system/control-interface.service" <<'END'
[Unit]
Description=The interface that sshd is reached by
BindsTo=sys-subsystem-net-devices-ens3.device
After=sys-subsystem-net-devices-ens3.device

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=ip address replace 10.0.2.15/24 dev ens3
ExecStart=ip link set ens3 up

[Install]
WantedBy=multi-user.target
END
chroot "$1" systemctl enable -q control-interface
chroot "$1" systemctl disable -q frr openvswitch-switch
chroot "$1" systemctl mask -q apt-daily.timer apt-daily-upgrade.timer e2scrub_all.timer e2scrub_reap.service \
    fstrim.timer dpkg-db-backup.timer networking.service systemd-networkd.service getty@tty1.service \
    systemd-update-utmp.service systemd-journal-flush.service systemd-pstore.service
