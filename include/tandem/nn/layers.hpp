// All kinds of layers, and ops on symbols.
#pragma once
#include <tandem/nn/layers/activation.hpp>
#include <tandem/nn/layers/attention.hpp>
#include <tandem/nn/layers/convolution.hpp>
#include <tandem/nn/layers/core.hpp>
#include <tandem/nn/layers/lambda.hpp>
#include <tandem/nn/layers/merging.hpp>
#include <tandem/nn/layers/normalization.hpp>
#include <tandem/nn/layers/pooling.hpp>
#include <tandem/nn/layers/preprocessing.hpp>
#include <tandem/nn/layers/recurrent.hpp>
#include <tandem/nn/layers/regularization.hpp>
#include <tandem/nn/layers/reshaping.hpp>
#include <tandem/nn/ops.hpp>
