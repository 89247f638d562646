/* SPDX-License-Identifier: MIT */
/*
 * What the Python binding uses of the C core. Cython's declarations, libspc.pxd in the build folder, are generated from
 * these headers by scripts/declarations.py.
 */
#ifndef LIBSPC_H
#define LIBSPC_H

#include "api/spc_api_binding.h"
#include "base/spc_cgroup.h"
#include "base/spc_clock.h"
#include "base/spc_copy.h"
#include "base/spc_error.h"
#include "base/spc_platform.h"
#include "base/spc_process.h"
#include "comm/spc_collect.h"
#include "comm/spc_comm.h"
#include "diagnose/spc_deadlock.h"
#include "diagnose/spc_deadlock_report.h"
#include "diagnose/spc_traffic.h"
#include "diagnose/spc_unmatched.h"
#include "diagnose/spc_waits.h"
#include "fork/spc_fork.h"
#include "fork/spc_infile.h"
#include "fork/spc_join.h"
#include "fork/spc_launcher.h"
#include "fork/spc_meet.h"
#include "message/spc_format.h"
#include "message/spc_mailbox.h"
#include "net/gateway/spc_gateway.h"
#include "net/link/spc_channel.h"
#include "net/link/spc_channel_mpi.h"
#include "net/link/spc_link.h"
#include "net/server/spc_server.h"
#include "reduce/spc_layout.h"
#include "reduce/spc_ops.h"
#include "reduce/spc_reduce.h"
#include "reduce/spc_tree.h"
#include "segment/spc_arena.h"
#include "segment/spc_board.h"
#include "segment/spc_config.h"
#include "segment/spc_event.h"
#include "segment/spc_note.h"
#include "segment/spc_segment.h"
#include "segment/spc_status.h"
#include "segment/spc_trace.h"
#include "spcomm/destination.h"
#include "spcomm/simtime.h"

#endif
