"""A recipe of a small language model of the toy corpus's English."""

RECIPE = """
name = "toy-lm"
[data]
target_language = "en"
train_target = "train.en"
valid_target = "valid.en"
[vocabulary]
size = 100
model_type = "bpe"
[model]
family = "lm"
embedding_size = 32
layers = 1
units = 32
attention_units = 16
dropout = 0.1
[training]
batch_tokens = 600
max_epochs = 2
learning_rate = 5e-3
warmup_steps = 20
threads = 1
label_smoothing = 0.0
ema_decay = 0.9
precision = "fp32"
early_stopping = "loss"
"""
