#pragma once

#include "cli/context.hpp"

namespace remote::cli {

// What became of a launch, on stderr: in one line where all is well, else who failed first, the last lines
// that it wrote, and what became of the others.
void show_verdict(Context& context, const Verdict& verdict);

// "3 others were ended after it, 1 succeeded": what became of the ranks but for the first that failed; "" for
// none.
std::string aftermath(const Verdict& verdict);

}  // namespace remote::cli
