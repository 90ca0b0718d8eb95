#include "agent/facts/environment.hpp"

#include "agent/facts/activation.hpp"
#include "agent/facts/programs.hpp"
#include "agent/facts/python.hpp"
#include "wire/text.hpp"

namespace remote::agent {

std::optional<Activation> read_environment(const Host& host, const wire::FactsRequest& request,
                                           wire::FactsReply& reply) {
  wire::FactsRequest rest = request;
  if (has_program_outside(host, request)) {
    rest.program.reset();
  }
  if (!rest.python && !rest.program && !rest.mpi) {
    return std::nullopt;
  }
  const Activation activation = activate(host, rest);
  if (rest.python) {
    read_python(host, rest, activation, reply.facts);
  }
  if (rest.program && !activation.has_program) {
    reply.missing = wire::to_line(*rest.program);
  }
  if (rest.mpi) {
    reply.mpi = read_mpi(activation);
  }
  return activation;
}

}  // namespace remote::agent
