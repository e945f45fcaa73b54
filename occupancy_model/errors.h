// How far estimated times are off, and by how much two of them have to differ before one is taken for the
// faster: all margins of times in one place.
#pragma once

namespace stitchwork {

/// In nine kernels of ten that have several forms, the one taken is at most so much slower than the best by
/// simulated time (docs/timing.md, "Forms of one kernel"; `scripts/bench/forms` prints it): more is a fault
/// of a rule.
inline constexpr double kChoiceError = 0.16;
/// Mappings are chosen by an estimate of their domain alone; by that of the whole kernel the one chosen is no
/// slower than another by more than this (tests/analysis/astitch_tuned_test.cpp).
inline constexpr double kDomainError = 0.05;

/// Forms of one kernel whose times differ by less are told apart by sectors and simplicity
/// (analysis/judge/order.h). Far below the 22 % within which nine of ten ratios of two forms are predicted:
/// wherever estimates differ, the lower one is right more often than sectors are. By simulated time the form
/// taken is 2.0 % behind the best on average with this, 2.7 % with 31 % (docs/timing.md, "Forms of one
/// kernel").
inline constexpr double kResolution = 0.02;

// What follows was chosen for each comparison and is below the error of pairs: of two forms that the model
// does not tell apart either may be taken, and these say which.

/// Mappings of one domain, launches, lanes: of those nearer than this the one named first is taken.
/// A choice, not measured: far below the error of any estimate, so that it breaks ties alone.
inline constexpr double kIndifference = 0.01;
/// Kernels apart, and one kernel of all their ops: fewer kernels are taken up to here.
/// Chosen, not measured: just above the 2.01 % at which a training step of perceptrons kept a kernel more.
inline constexpr double kFewerKernels = 0.03;
/// The same of kernels that are to run side by side, before there is a plan of them: that is judged again.
/// A choice, not measured: twice kFewerKernels, because the plan is judged again.
inline constexpr double kFewerKernelsUnplanned = 0.06;
/// A form that auto takes in place of the stitched kernel has to be so much faster.
/// A choice, not measured: the same as for fewer kernels.
inline constexpr double kOtherForm = 0.03;
/// Modelled times of library calls, where kernels could do their work.
/// Measured on seven devices: half of the products are estimated within 21 % (docs/timing.md, "Library
/// products"), most of them too short.
inline constexpr double kLibraryError = 0.21;
/// What whole sectors may cost by an estimate that does not know what they save.
/// A choice, not measured: the same as for fewer kernels.
inline constexpr double kWholeSectors = 0.03;

}  // namespace stitchwork
