#pragma once

namespace remote::agent {

// Waits for the lease on this server, in a child of the launch's first job there. `folder` is that job's
// folder. Descriptor 7 is the lease's file, which the guards of all jobs have open too. Returns 0 when the
// ranks may start: `devices` is written, `queue` is removed, and the other jobs, which read their FIFOs
// `.turn`, are notified. Returns 1 if the lease cannot be taken, or if the caller has died.
int run_wait_for_lease(const char* folder);

}  // namespace remote::agent
