#pragma once

#include <string>
#include <vector>

// Replacements for ssh that mpirun calls: they deliver its daemon's command line to the job on another
// server. `words`: mpirun's name for the host, and the command line. The working directory is the job's
// folder. They exit with an error if the order is not for a daemon, or if its host is not in the launch.

namespace remote::agent {

// Passes the order to the launch's lifeline on this server, and returns when the lifeline has sent it. If the
// lifeline has died, the next query of the job restarts it, and it finds the order. MPICH's mpirun assumes
// that the daemon has exited when its agent exits, so in that case this returns only when the job on the host
// has ended.
int send_order_by_lifeline(const std::vector<std::string>& words);

// Runs receive_order() on the host through this server's ssh, with the user's own keys and settings. The file
// `mpi_hosts` has a line HOST USER ADDRESS PORT COMMAND for each host. Returns the exit status of ssh.
int send_order_by_ssh(const std::vector<std::string>& words);

// Runs on the other server: passes the order, the daemon and its arguments, to the waiting job. For MPICH's
// daemon, it returns when the job has ended, or when the sender's ssh, which keeps stdin open, has exited.
int receive_order(std::vector<std::string> words);

}  // namespace remote::agent
